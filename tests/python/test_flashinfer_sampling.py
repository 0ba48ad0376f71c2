# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FlashInfer's sampling functions, each called with its exact keywords; supports and shares beside torch in double."""
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import randn  # noqa: E402

pytestmark = pytest.mark.anywhere
VOCAB = 40


def on_device(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype, device=places.TORCH)


def with_ties():
    """Rows of probabilities in which many are equal."""
    counts = torch.randint(0, 8, (4, VOCAB), generator=torch.Generator().manual_seed(5)).float()
    counts[:, 3] = 9
    return (counts / counts.sum(1, keepdim=True)).to(places.TORCH)


def kept_by_k(x, k):
    """Elements of which fewer than k are larger: equal ones stand or fall together."""
    larger = (x[:, None, :].double() > x[:, :, None].double()).sum(-1)
    return larger < torch.as_tensor(k, device=x.device).reshape(-1, 1)


def kept_by_p(probs, p):
    """Elements behind which the larger ones have less than p of the mass."""
    probs = probs.double()
    mass = torch.where(probs[:, None, :] > probs[:, :, None], probs[:, None, :], 0).sum(-1) / probs.sum(1, keepdim=True)
    return mass < torch.as_tensor(p, dtype=torch.float64, device=probs.device).reshape(-1, 1) - 1e-9


def over_sum(probs, kept):
    cut = torch.where(kept, probs.double(), 0)
    return cut / cut.sum(1, keepdim=True)


def test_softmax(fi):
    logits = randn(4, VOCAB)
    for dtype in (torch.float32, torch.bfloat16):
        x, temperatures = logits.to(dtype), on_device([0.5, 1.0, 2.0, 0.7])
        for temperature, by in ((None, 1.0), (0.7, 0.7), (temperatures, temperatures.double()[:, None]), (on_device([0.5]), 0.5)):
            got = fi.softmax(logits=x, temperature=temperature, enable_pdl=None)
            assert got.dtype == torch.float32 and torch.allclose(got.double(), torch.softmax(x.double() / by, 1), rtol=1e-5, atol=1e-9)


def test_mask(fi):
    ties = (with_ties() * 64).round()
    for x in (randn(4, VOCAB), ties, ties.bfloat16()):
        for k in (3, on_device([1, 5, 17, 40], torch.int32), on_device([6], torch.int64)):
            got = fi.top_k_mask_logits(logits=x, top_k=k)
            assert got.dtype == x.dtype and torch.equal(got, torch.where(kept_by_k(x, k.cpu() if isinstance(k, torch.Tensor) else k), x, -torch.inf))
    assert (kept_by_k(ties, 5).sum(1) > 5).any(), "the case must have equals at the boundary"


@pytest.mark.parametrize("name", ["top_k_renorm_probs", "top_p_renorm_probs", "top_k_renorm_prob", "top_p_renorm_prob"])
def test_renorm(fi, name):
    function, kept_by = getattr(fi.sampling, name), kept_by_k if "top_k" in name else kept_by_p
    values = (4, on_device([1, 3, 9, 40], torch.int32)) if "top_k" in name else (0.4, on_device([0.1, 0.37, 0.8, 0.99]))
    more = 0
    for x in (with_ties(), torch.softmax(randn(4, VOCAB), 1)):
        for value in values:
            got = function(probs=x, **{name[:5]: value}, is_deterministic=True)
            expected = over_sum(x, kept_by(x, value))
            assert got.dtype == torch.float32 and torch.equal(got > 0, expected > 0) and torch.allclose(got.double(), expected, rtol=1e-6)
            more = max(more, int(((got > 0).sum(1).cpu() - torch.as_tensor(value).cpu().reshape(-1)).max()))
    assert "top_p" in name or more > 0, "the case must have equals at the boundary"
    if "top_k" in name:
        assert function(with_ties().bfloat16(), 4).dtype == torch.bfloat16


def shares(draw, x, calls=12, of=64):
    """How often each token of each row of x is drawn, by `of` output rows a row in each call."""
    counts = torch.zeros(x.shape, dtype=torch.float64)
    indices = torch.arange(x.size(0), device=x.device).repeat_interleave(of)
    for i in range(calls):
        tokens = draw(indices=indices, seed=1234, offset=i).cpu().long()
        assert tokens.shape == indices.shape
        counts.index_put_((indices.cpu().long(), tokens), torch.ones(tokens.numel(), dtype=torch.float64), accumulate=True)
    return counts / (calls * of)


def is_drawn_from(share, expected, draws=12 * 64):
    """Nothing outside the support, all of it that is not rare, and each share within 5 standard deviations."""
    expected = expected.cpu()
    assert (share[expected == 0] == 0).all() and (share[expected > 20 / draws] > 0).all()
    assert ((share - expected).abs() <= 5 * (expected * (1 - expected) / draws).sqrt() + 1e-12).all()


def test_distribution(fi):
    probs = with_ties()
    logits = torch.where(probs > 0, probs.log(), -torch.inf)
    k, p, min_p = on_device([1, 12, 20, 40], torch.int32), on_device([0.99, 0.7, 0.5, 0.3]), on_device([0.1, 0.3, 0.9, 0.0])
    both_first = over_sum(over_sum(probs, kept_by_k(probs, k)).float(), kept_by_p(over_sum(probs, kept_by_k(probs, k)), p))
    joint = over_sum(probs, kept_by_k(probs, k) & kept_by_p(probs, p))
    assert not torch.equal(both_first > 0, joint > 0), "the case must tell the orders apart"
    everything = {"deterministic": True, "generator": None, "check_nan": True}
    cases = [
        (lambda **r: fi.sampling_from_logits(logits=logits, **everything, **r), over_sum(probs, probs > 0)),
        (lambda **r: fi.sampling_from_probs(probs=probs, **everything, return_valid=False, **r), over_sum(probs, probs > 0)),
        (lambda **r: fi.top_k_sampling_from_probs(probs=probs, top_k=k, **everything, **r), over_sum(probs, kept_by_k(probs, k))),
        (lambda **r: fi.top_p_sampling_from_probs(probs=probs, top_p=p, **everything, **r), over_sum(probs, kept_by_p(probs, p))),
        (lambda **r: fi.min_p_sampling_from_probs(probs=probs, min_p=min_p, **everything, **r), over_sum(probs, probs >= min_p[:, None] * probs.amax(1, keepdim=True) * (1 - 1e-6))),
        (lambda **r: fi.top_k_top_p_sampling_from_probs(probs=probs, top_k=k, top_p=p, filter_apply_order="top_k_first", **everything, **r), both_first),
        (lambda **r: fi.top_k_top_p_sampling_from_logits(logits=logits, top_k=k, top_p=p, filter_apply_order="top_k_first", **everything, **r), both_first),
        (lambda **r: fi.top_k_top_p_sampling_from_probs(probs=probs, top_k=k, top_p=p, filter_apply_order="joint", **everything, **r), joint),
        (lambda **r: fi.top_k_top_p_sampling_from_logits(logits=logits, top_k=k, top_p=p, filter_apply_order="joint", **everything, **r), joint),
    ]
    for draw, expected in cases:
        is_drawn_from(shares(draw, probs), expected)


def test_results(fi):
    """Their dtypes, shapes, and rows that have nothing to draw."""
    probs = with_ties()
    probs[2] = 0
    tokens, valid = fi.top_p_sampling_from_probs(probs, 0.9, return_valid=True)
    assert tokens.dtype == torch.int32 and tokens.shape == (4,) and valid.dtype == torch.bool and valid.tolist() == [True, True, False, True]
    assert fi.sampling_from_probs(probs, on_device([0, 3, 3], torch.int64)).dtype == torch.int64
    for name, more in (("sampling_from_probs", {}), ("top_k_sampling_from_probs", {"top_k": 3}), ("min_p_sampling_from_probs", {"min_p": 0.1}),
                       ("top_k_top_p_sampling_from_probs", {"top_k": 3, "top_p": 0.5})):
        assert getattr(fi, name)(probs, **more, return_valid=True)[1].tolist() == [True, True, False, True]
    probs[1, 5] = float("nan")
    with pytest.raises(ValueError, match=r"^flashinfer\.sampling_from_probs: `probs` has a NaN"):
        fi.sampling_from_probs(probs, check_nan=True)
    with pytest.raises(ValueError, match=r"`filter_apply_order` is 'top_p_first', expected 'top_k_first', 'joint'"):
        fi.top_k_top_p_sampling_from_probs(probs, 3, 0.5, filter_apply_order="top_p_first")
    with pytest.raises(ValueError, match=r"^flashinfer\.top_k_mask_logits: `top_k` has shape \[3\]"):
        fi.top_k_mask_logits(probs, on_device([1, 2, 3], torch.int32))


def test_random_numbers(fi):
    """Reproducible by generator, numbers and tensors; another draw for each call and each row."""
    probs = torch.full((64, VOCAB), 1 / VOCAB, device=places.TORCH)
    draw = lambda **random: fi.sampling_from_probs(probs, **random).tolist()  # noqa: E731
    generator = torch.Generator(places.TORCH)
    by_generator = [draw(generator=generator.manual_seed(3)), draw(generator=generator), draw(generator=generator.manual_seed(3))]
    assert by_generator[0] == by_generator[2] != by_generator[1]
    torch.manual_seed(4)
    first, second = draw(), draw()
    torch.manual_seed(4)
    assert first == draw() and first != second
    assert draw(seed=7, offset=1) == draw(seed=7, offset=1) != draw(seed=7, offset=2) and draw(seed=7, offset=1) != draw(seed=8, offset=1)
    assert draw(seed=2**64 - 1, offset=0) == draw(seed=-1, offset=0)
    one, each = on_device([7], torch.int64), on_device(list(range(64)), torch.int64)
    assert draw(seed=one, offset=1) == draw(seed=one.expand(64), offset=on_device([1], torch.int64)) != draw(seed=one, offset=2)
    assert draw(seed=each, offset=each) != draw(seed=one, offset=each)
    for random in ({"seed": 7, "offset": 1}, {"seed": one, "offset": 1}, {"seed": one, "offset": one.expand(64)}):
        assert len(set(draw(**random))) > VOCAB // 2, "rows are drawn apart from each other"
    with pytest.raises(ValueError, match=r"`offset` is None, expected `seed` and `offset` together"):
        draw(seed=7)
    with pytest.raises(ValueError, match=r"`seed` has 3 elements, expected 1 or 64"):
        draw(seed=each[:3], offset=0)


def test_generator_of_a_gpu_counts_on(fi):
    """By as many offsets as a call uses, in the multiples of 4 that torch takes."""
    class Generator:
        offset = 8

        def get_offset(self):
            return self.offset

        def set_offset(self, offset):
            self.offset = offset

        def initial_seed(self):
            return 77

    generator, device = Generator(), torch.device("cuda", 0)
    got = [fi.sampling._random("f", 4, generator, None, None, device, draws) for draws in (1, 6, 4)]
    assert got == [{"seed": 77, "offset": 8}, {"seed": 77, "offset": 12}, {"seed": 77, "offset": 20}] and generator.offset == 24


def test_chain(fi):
    """Drafts drawn from p stand or are replaced so that the first token has the target's distribution."""
    batch, drafts, vocab = 512, 2, 6
    p, q = (torch.softmax(randn(drafts + 1, vocab, seed=s), -1) for s in (1, 2))
    ids = torch.stack([torch.multinomial(p[i].cpu(), batch, True, generator=torch.Generator().manual_seed(i)) for i in range(drafts)], 1).int().to(places.TORCH)
    counts, accepted_at_first = torch.zeros(vocab, dtype=torch.float64), 0
    for offset in range(6):
        accepted, emitted = (torch.full((batch,), 10, dtype=torch.int32, device=places.TORCH) for _ in range(2))
        tokens, got_accepted, got_emitted = fi.chain_speculative_sampling(
            draft_probs=p[:drafts].expand(batch, -1, -1).contiguous(), draft_token_ids=ids, target_probs=q.expand(batch, -1, -1).contiguous(), maybe_output_accepted_token_num=accepted,
            maybe_output_emitted_draft_token_num=emitted, deterministic=True, generator=None, seed=11, offset=100 * offset)
        assert got_accepted is accepted and got_emitted is emitted and tokens.shape == (batch, drafts + 1) and tokens.dtype == torch.int32
        counts += torch.bincount(tokens[:, 0].cpu().long(), minlength=vocab)
        stand = (emitted - 10).tolist()
        for row, n, draft in zip(tokens.tolist(), stand, ids.tolist()):
            assert row[:n] == draft[:n] and 0 <= row[n] < vocab and row[n + 1:] == [-1] * (drafts - n)
        assert ((accepted >= emitted) & (accepted <= 12)).all()
        accepted_at_first += sum(n > 0 for n in stand)
    expected, draws = q[0].double().cpu(), 6 * batch
    assert ((counts / draws - expected).abs() <= 5 * (expected / draws).sqrt()).all()
    rate = torch.minimum(p[0], q[0]).double().sum().item()
    assert abs(accepted_at_first / draws - rate) < 5 * (rate / draws) ** 0.5
    tokens, accepted, emitted = fi.chain_speculative_sampling(p[None, :drafts], ids[:1], q[None])
    assert accepted.shape == emitted.shape == (1,) and accepted.item() <= 2


def test_dtypes(fi):
    """Doubles and long integers give what f32 and int32 give; what would be cut is refused by its name."""
    probs, logits = with_ties(), randn(4, VOCAB)
    same = {"seed": 7, "offset": 3}
    for name, x, more in (("sampling_from_probs", probs, same), ("sampling_from_logits", logits, same), ("top_p_sampling_from_probs", probs, {"top_p": 0.7, **same}), ("min_p_sampling_from_probs", probs, {"min_p": 0.2, **same}),
                          ("top_k_top_p_sampling_from_logits", logits, {"top_k": 9, "top_p": 0.7, **same}), ("top_p_renorm_probs", probs, {"top_p": 0.7}), ("softmax", logits, {})):
        assert torch.equal(getattr(fi, name)(x.double(), **more), getattr(fi, name)(x, **more)), name
    for name in ("top_k_renorm_probs", "top_k_mask_logits"):
        with pytest.raises(TypeError, match=rf"^flashinfer\.{name}: `(probs|logits)` is f64"):
            getattr(fi, name)(probs.double(), 3)
    drafts, target, ids = torch.softmax(randn(3, 2, VOCAB), -1), torch.softmax(randn(3, 3, VOCAB, seed=2), -1), on_device([[1, 2], [0, 5], [7, 7]], torch.int32)
    want = fi.chain_speculative_sampling(drafts, ids, target, seed=3, offset=4)
    got = fi.chain_speculative_sampling(drafts.double(), ids.long(), target.double(), seed=3, offset=4)
    assert all(torch.equal(a, b) for a, b in zip(got, want)) and got[0].dtype == torch.int32
    floats = on_device([1.5, 2.5, 3.5, 4.5])
    for name, call in (("draft_token_ids", lambda: fi.chain_speculative_sampling(drafts, ids.float(), target)), ("top_k", lambda: fi.top_k_sampling_from_probs(probs, floats)),
                       ("indices", lambda: fi.sampling_from_probs(probs, floats)), ("seed", lambda: fi.sampling_from_probs(probs, seed=floats, offset=0)),
                       ("offset", lambda: fi.sampling_from_probs(probs, seed=0, offset=floats)), ("top_k", lambda: fi.top_k_renorm_probs(probs, floats))):
        with pytest.raises(TypeError, match=rf"^flashinfer\.\w+: `{name}` is float32, expected integers"):
            call()
    with pytest.raises(TypeError, match=r"^flashinfer\.chain_speculative_sampling: `maybe_output_accepted_token_num` is i64"):
        fi.chain_speculative_sampling(drafts, ids, target, torch.zeros(3, dtype=torch.int64, device=places.TORCH))


def test_a_row_of_zeros(fi):
    """The document says NaN where FlashInfer has 0, and that other rows and samplers do not mind."""
    probs = with_ties()
    probs[2] = 0
    for got in (fi.top_p_renorm_probs(probs, 0.5), fi.top_k_renorm_probs(probs, 3)):
        assert got[2].isnan().all() and not got[[0, 1, 3]].isnan().any()
