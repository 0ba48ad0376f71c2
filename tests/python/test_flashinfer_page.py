# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FlashInfer's page functions, each called with its exact keywords; results beside loops."""
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import randn  # noqa: E402

pytestmark = pytest.mark.anywhere
BF16, PAGE = torch.bfloat16, 4
INDPTR, INDICES, LAST = [0, 2, 2, 5], [6, 1, 0, 3, 5], [3, 0, 2]  # a request without pages
APPEND, LENGTHS = [0, 3, 3, 8], [7, 0, 10]


def integers(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device=places.TORCH)


def expected_places():
    """(request, position) of each token."""
    return [(b, LENGTHS[b] - (APPEND[b + 1] - t)) for b in range(3) for t in range(APPEND[b], APPEND[b + 1])]


def arguments(fi):
    batch_indices, positions = fi.get_batch_indices_positions(append_indptr=integers(APPEND), seq_lens=integers(LENGTHS), nnz=8)
    return dict(batch_indices=batch_indices, positions=positions, kv_indices=integers(INDICES), kv_indptr=integers(INDPTR), kv_last_page_len=integers(LAST))


def test_indices(fi):
    seq_lens = fi.get_seq_lens(kv_indptr=integers(INDPTR), kv_last_page_len=integers(LAST), page_size=PAGE)
    assert seq_lens.tolist() == LENGTHS
    for given in (False, True):
        outs = {name: integers([7] * 8) if given else None for name in ("batch_indices", "positions")}
        batch_indices, positions = fi.get_batch_indices_positions(append_indptr=integers(APPEND), seq_lens=seq_lens, nnz=8, **outs)
        assert batch_indices.dtype == positions.dtype == torch.int32
        assert list(zip(batch_indices.tolist(), positions.tolist())) == expected_places()
        assert not given or (batch_indices is outs["batch_indices"] and positions is outs["positions"])
    with pytest.raises(ValueError, match=r"get_seq_lens: `kv_last_page_len` has 2 elements, expected those of `kv_indptr` less one, 3"):
        fi.get_seq_lens(integers(INDPTR), integers(LAST[:2]), PAGE)


@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_append(fi, layout, combined):
    shape = (PAGE, 2, 32) if layout == "NHD" else (2, PAGE, 32)
    for dtype in (BF16, torch.float8_e4m3fn):
        cache = torch.zeros(7, 2, *shape, device=places.TORCH).to(dtype)
        given = cache if combined else (cache[:, 0].clone(), cache[:, 1].clone())
        key, value = randn(8, 2, 32).to(dtype), randn(8, 2, 32, seed=2).to(dtype)
        assert fi.append_paged_kv_cache(append_key=key, append_value=value, paged_kv_cache=given, kv_layout=layout, **arguments(fi)) is None
        parts = given.unbind(1) if combined else given
        for part, rows in zip(parts, (key, value)):
            part, expected = part.float(), torch.zeros(7, PAGE, 2, 32, device=places.TORCH)
            for row, (b, position) in zip(rows.float(), expected_places()):
                expected[INDICES[INDPTR[b] + position // PAGE], position % PAGE] = row
            assert torch.equal(part if layout == "NHD" else part.transpose(1, 2), expected)
    with pytest.raises(ValueError, match=r"^flashinfer\.append_paged_kv_cache: `kv_layout` is 'NDH', expected 'NHD', 'HND'"):
        fi.append_paged_kv_cache(key, value, paged_kv_cache=given, kv_layout="NDH", **arguments(fi))
    with pytest.raises(TypeError, match=r"^flashinfer\.append_paged_kv_cache: `append_value` is f32"):
        fi.append_paged_kv_cache(key, value.float(), paged_kv_cache=given, kv_layout=layout, **arguments(fi))


def test_append_of_mla(fi):
    ckv, kpe = randn(8, 96, dtype=BF16), randn(8, 32, seed=2, dtype=BF16)
    for none in (None, "ckv", "kpe"):
        caches = {name: None if none == name else torch.zeros(7, PAGE, dim, dtype=BF16, device=places.TORCH) for name, dim in (("ckv", 96), ("kpe", 32))}
        assert fi.append_paged_mla_kv_cache(append_ckv=ckv, append_kpe=kpe, ckv_cache=caches["ckv"], kpe_cache=caches["kpe"], **arguments(fi)) is None
        for name, rows in (("ckv", ckv), ("kpe", kpe)):
            if none != name:
                expected = torch.zeros_like(caches[name])
                for row, (b, position) in zip(rows, expected_places()):
                    expected[INDICES[INDPTR[b] + position // PAGE], position % PAGE] = row
                assert torch.equal(caches[name], expected)
