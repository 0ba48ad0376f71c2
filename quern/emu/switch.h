// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <boost/context/detail/fcontext.hpp>

namespace quern::emu {

using boost::context::detail::transfer_t;

#if defined(__x86_64__)
/// Boost's jump ends with a jmp where a return is due, so a processor's stack of predicted returns is off by one after
/// each switch and every return of the resumed thread is mispredicted. Here the jump is entered without a call and its
/// way back leads over a return. All threads of a block call from the same places, so the returns are then predicted: a
/// warp collective takes half the time.
extern "C" transfer_t quern_jump_fcontext(void* to, void* data) __attribute__((visibility("hidden")));
inline transfer_t jump(void* to, void* data) { return quern_jump_fcontext(to, data); }
#else
inline transfer_t jump(void* to, void* data) { return boost::context::detail::jump_fcontext(to, data); }
#endif

/// Whoever is switched to first stores where the other one goes on: only then is that place known.
inline void store_origin(transfer_t from) { *static_cast<void**>(from.data) = from.fctx; }

}  // namespace quern::emu
