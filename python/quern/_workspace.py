# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Memory of torch as the workspace of calls. torch is imported when a function is called."""
ALIGNMENT = 256  # bytes, of where a workspace begins


def aligned(memory):
    """The bytes of a tensor, from the first that a workspace may begin at."""
    import torch

    of_bytes = memory.reshape(-1).view(torch.uint8)
    return of_bytes[-of_bytes.data_ptr() % ALIGNMENT:]


def empty(size, device):
    """A workspace of so many bytes; None for 0."""
    import torch

    return aligned(torch.empty(size + ALIGNMENT - 1, dtype=torch.uint8, device=device))[:size] if size else None
