# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""The k largest of each row."""
import enum

import quern
from quern import _check
from quern.compat.flashinfer._base import call, one_of, refuse, tensor, torch


class TopKTieBreak(enum.IntEnum):
    """Which of equal values at the boundary are taken: any, those of the lowest or of the highest index."""
    NONE = 0
    SMALL = 1
    LARGE = 2


def _options(where, deterministic, tie_break, dsa_graph_safe):
    """quern's selection is deterministic, safe in a graph, and takes the lowest index."""
    _check.boolean(f"flashinfer.{where}", "deterministic", deterministic), _check.boolean(f"flashinfer.{where}", "dsa_graph_safe", dsa_graph_safe)
    one_of(where, "tie_break", _check.integer(f"flashinfer.{where}", "tie_break", tie_break, 0, 2), {0: None, 1: None, 2: "quern.topk.select takes the lowest indices of equal values"})


def top_k(input, k, sorted=False, deterministic=False, tie_break=TopKTieBreak.NONE, dsa_graph_safe=False):
    """(values, int64 indices) of the k largest of each row; sorted: by descending value, else by ascending index. Of equal values those of the lowest
    indices."""
    _options("top_k", deterministic, tie_break, dsa_graph_safe)
    tensor("top_k", "input", input, 2)
    _check.integer("flashinfer.top_k", "k", k, 0, input.size(1))
    indices, values = call("top_k", quern.topk.select, {"x": "input"}, x=input, k=k, sorted=_check.boolean("flashinfer.top_k", "sorted", sorted), values=True)
    return values, indices.long()


def _indices(where, input, lengths, k, row_starts):
    return call(where, quern.topk.select, {"x": "input"}, x=input, k=k, sorted=False, lengths=lengths, row_starts=row_starts)


def top_k_ragged_transform(input, offsets, lengths, k, deterministic=False, tie_break=TopKTieBreak.NONE, dsa_graph_safe=False, row_starts=None):
    """offsets[row] + index of the k largest among the first lengths[row] of each row, int32 [rows, k]; -1 behind those of a row that has fewer."""
    where = "top_k_ragged_transform"
    _options(where, deterministic, tie_break, dsa_graph_safe)
    tensor(where, "input", input, 2), tensor(where, "offsets", offsets, 1)
    indices = _indices(where, input, lengths, k, row_starts)
    return torch.where(indices >= 0, indices + offsets.int()[:, None], -1)


def top_k_page_table_transform(input, src_page_table, lengths, k, row_to_batch=None, deterministic=False, tie_break=TopKTieBreak.NONE, dsa_graph_safe=False, row_starts=None,
                               page_table_row_starts=None, *, page_size=1, out=None, out_raw_indices=None):
    """src_page_table[row, index] of the same; row_to_batch names the row of the table. The indices themselves go to out_raw_indices where it is given."""
    where = "top_k_page_table_transform"
    _options(where, deterministic, tie_break, dsa_graph_safe)
    if _check.integer(f"flashinfer.{where}", "page_size", page_size, 1, 2**31 - 1) != 1:
        raise NotImplementedError(f"flashinfer.{where}: `page_size` is {page_size}, expected 1: quern has no op that looks up pages of several tokens")
    refuse(where, "rows of the table begin at column 0", page_table_row_starts=page_table_row_starts)
    tensor(where, "input", input, 2), tensor(where, "src_page_table", src_page_table, 2)
    indices = _indices(where, input, lengths, k, row_starts)
    table = src_page_table if row_to_batch is None else src_page_table[tensor(where, "row_to_batch", row_to_batch, 1).long()]
    result = torch.where(indices >= 0, table.gather(1, indices.clamp(min=0).long()), -1)
    if out_raw_indices is not None:
        tensor(where, "out_raw_indices", out_raw_indices).copy_(indices)
    return result if out is None else tensor(where, "out", out).copy_(result)
