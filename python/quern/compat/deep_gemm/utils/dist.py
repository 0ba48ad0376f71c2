# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Several processes, by torch.distributed: what programs of DeepGEMM begin with. No kernel here spans GPUs."""
import os

import torch
import torch.distributed

from quern.compat.deep_gemm._arguments import checked

__all__ = ["dist_print", "init_dist", "uneven_all_gather"]

_local = {"rank": None}


@checked()
def init_dist(local_rank, num_local_ranks):
    """Joins process `local_rank` of the `num_local_ranks` on this machine. MASTER_ADDR, MASTER_PORT, WORLD_SIZE (machines) and RANK (which of them)
    are read. Returns the rank, how many there are, and a group of all. By NCCL, or without a GPU by gloo on tensors of the host."""
    machines, machine = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    world, on_gpu = machines * num_local_ranks, torch.cuda.is_available()
    address = f"tcp://{os.environ.get('MASTER_ADDR', '127.0.0.1')}:{os.environ.get('MASTER_PORT', '8361')}"
    if on_gpu:
        torch.cuda.set_device(local_rank)
        torch.set_default_device("cuda")
    torch.distributed.init_process_group("nccl" if on_gpu else "gloo", init_method=address, world_size=world, rank=machine * num_local_ranks + local_rank)
    _local["rank"] = local_rank
    return torch.distributed.get_rank(), torch.distributed.get_world_size(), torch.distributed.new_group(list(range(world)))


@checked()
def uneven_all_gather(tensor, dim=0, group=None):
    """The tensors of all processes one behind the other along `dim`, in which alone they may differ."""
    world = torch.distributed.get_world_size(group)
    own = torch.tensor([tensor.size(dim)], device=tensor.device)
    sizes = [torch.empty_like(own) for _ in range(world)]
    torch.distributed.all_gather(sizes, own, group=group)
    sizes = [int(size) for size in sizes]
    shape = list(tensor.shape)
    shape[dim] = max(sizes)
    padded = tensor.new_zeros(shape)
    padded.narrow(dim, 0, tensor.size(dim)).copy_(tensor)
    parts = [torch.empty_like(padded) for _ in range(world)]
    torch.distributed.all_gather(parts, padded, group=group)
    return torch.cat([part.narrow(dim, 0, size) for part, size in zip(parts, sizes)], dim)


@checked()
def dist_print(s="", once_in_node=False):
    """Prints on each process, or on the first of each machine, and waits for all."""
    if _local["rank"] is None:
        raise RuntimeError("deep_gemm.dist_print: no process group, expected a call of init_dist() before")
    if not once_in_node or _local["rank"] == 0:
        print(s, flush=True)
    torch.distributed.barrier()
