# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Random numbers of torch's generators for quern's, which are counted. torch is imported when a function is called."""


def counter_of(generator, device, draws=1):
    """{"seed", "offset"} of a call of a sampling op that uses so many offsets from the first. A generator of a GPU, None: the device's own, counts on; one of the
    host, None: torch's, gives a number as a seed."""
    import torch

    if device.type != "cuda":
        return {"seed": int(torch.randint(2**63 - 1, (), generator=generator)), "offset": 0}
    if generator is None:
        generator = torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
    offset = generator.get_offset()
    generator.set_offset(offset + -(-draws // 4) * 4)  # torch takes multiples of 4
    return {"seed": generator.initial_seed() % 2**63, "offset": offset}
