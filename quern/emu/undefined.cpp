// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Reports of undefined behaviour: reads the descriptions that g++ and clang put beside each check of
// UndefinedBehaviorSanitizer. Their layout is the interface between compilers and libubsan, the same since GCC 8 and clang 5.
#include <bit>
#include <cstring>

#include "quern/emu/bounds.h"
#include "quern/emu/worker.h"

namespace quern::emu {
namespace {

struct Position {
  const char* file;
  u32 line, column;
};
struct Type {
  enum Kind : u16 { integer = 0, floating = 1 };
  u16 kind;
  u16 info;      ///< integer: bit 0 signed, above it log2 of the width; floating: the width
  char name[1];  ///< in quotes
};
struct OneType {
  Position at;
  const Type* type;
};
struct TwoTypes {
  Position at;
  const Type *first, *second;
};
struct Mismatch {
  Position at;
  const Type* type;
  u8 log_alignment;
  u8 use;
};

u32 width_of(const Type& type) { return type.kind == Type::integer ? 1u << (type.info >> 1) : type.info; }
bool is_signed(const Type& type) { return type.kind == Type::integer && (type.info & 1); }

/// A value as handed over: in the word when it fits, else by address.
std::string value_text(const Type& type, u64 word) {
  const u32 width = width_of(type);
  if (type.kind == Type::floating) {
    if (width == 32) return text_of("%.9g", double(std::bit_cast<float>(u32(word))));
    if (width == 64) return text_of("%.17g", std::bit_cast<double>(word));
    return "a value";
  }
  if (type.kind != Type::integer || width > 64) return "a value";
  if (!is_signed(type)) return text_of("%llu", width < 64 ? word & ((u64(1) << width) - 1) : word);
  return text_of("%lld", width < 64 ? i64(word << (64 - width)) >> (64 - width) : i64(word));
}
bool is_negative(const Type& type, u64 word) { return is_signed(type) && (word >> (width_of(type) - 1) & 1); }

std::string cannot_be(const char* operation, const Type& type, u64 a, u64 b) {
  return value_text(type, a) + operation + value_text(type, b) + " cannot be represented in type " + type.name;
}

std::string shift_text(const TwoTypes& types, u64 value, u64 places) {
  const Type &left = *types.first, &right = *types.second;
  if (is_negative(right, places)) return "shift by " + value_text(right, places) + " places, a negative number";
  if (places >= width_of(left))
    return "shift of " + std::to_string(width_of(left)) + "-bit type " + left.name + " by " + value_text(right, places) + " places";
  return "shift of " + value_text(left, value) + " by " + value_text(right, places) + " places cannot be represented in type " + left.name;
}

/// The uses of a pointer, numbered alike by both compilers.
const char* use_name(u8 use) {
  constexpr const char* kNames[] = {
      "load",   "store",  "reference binding", "member access", "member call", "constructor call", "downcast", "downcast",
      "upcast", "upcast", "conversion",        "passing",       "dynamic call"};
  return use < std::size(kNames) ? kNames[use] : "use";
}

Report mismatch_report(const Mismatch& m, u64 pointer) {
  const std::string use = std::string(use_name(m.use)) + " of type " + m.type->name;
  const u64 alignment = u64(1) << m.log_alignment;
  constexpr u64 kNullPage = 4096;
  if (pointer < kNullPage) return {ReportKind::fault, {}, -1, pointer, use + text_of(" through a null pointer, at 0x%llx", pointer)};
  if (pointer & (alignment - 1))
    return {ReportKind::misaligned, {}, -1, pointer, use + text_of(" at 0x%llx, which is no multiple of %llu", pointer, alignment)};
  return {ReportKind::index_oob, {}, -1, pointer, use + text_of(" at 0x%llx, where its object has too few bytes", pointer)};
}

/// Kind and text of what happened; position and thread are the caller's to add.
Report report_of(Undefined what, const void* data, u64 a, u64 b) {
  const auto& one = *static_cast<const OneType*>(data);
  const auto& two = *static_cast<const TwoTypes*>(data);
  const auto undefined = [](std::string text) { return Report{ReportKind::undefined, {}, -1, 0, std::move(text)}; };
  switch (what) {
    case Undefined::type_mismatch: return mismatch_report(*static_cast<const Mismatch*>(data), a);
    case Undefined::add: return undefined("overflow: " + cannot_be(" + ", *one.type, a, b));
    case Undefined::subtract: return undefined("overflow: " + cannot_be(" - ", *one.type, a, b));
    case Undefined::multiply: return undefined("overflow: " + cannot_be(" * ", *one.type, a, b));
    case Undefined::negate:
      return undefined("overflow: the negative of " + value_text(*one.type, a) + " cannot be represented in type " + one.type->name);
    case Undefined::divide: return undefined("division: " + cannot_be(" / ", *one.type, a, b));
    case Undefined::shift: return undefined(shift_text(two, a, b));
    case Undefined::index:
      return {ReportKind::index_oob, {}, -1, 0, "index " + value_text(*two.second, a) + " of an array of type " + two.first->name};
    case Undefined::unreachable: return undefined("code that was promised not to be reached");
    case Undefined::missing_return: return undefined("the end of a function that returns a value");
    case Undefined::array_size: return undefined("an array of " + value_text(*one.type, a) + " elements");
    case Undefined::float_cast: return undefined(value_text(*two.first, a) + " is outside the range of type " + two.second->name);
    case Undefined::invalid_value:
      return undefined("load of " + value_text(*one.type, a) + ", which is no value of type " + one.type->name);
    case Undefined::invalid_builtin: return undefined("count of leading or trailing zeros of 0");
    case Undefined::null_argument: return undefined("a null pointer as an argument that must not be one");
    case Undefined::null_return: return undefined("a null pointer returned where none may be");
    case Undefined::pointer_overflow:
      return undefined(text_of("pointer 0x%llx moved to 0x%llx: ", a, b) + (a && b ? "past the end of memory" : "from or to null"));
    case Undefined::alignment_assumption: return undefined(text_of("0x%llx is not aligned as was promised", a));
  }
  return undefined("?");
}

/// What computes a number that the language does not define leaves memory alone: the launch goes on, to find more.
bool harmless(Undefined what) {
  switch (what) {
    case Undefined::add:
    case Undefined::subtract:
    case Undefined::multiply:
    case Undefined::negate:
    case Undefined::shift:
    case Undefined::float_cast:
    case Undefined::invalid_builtin:
    case Undefined::pointer_overflow: return true;
    default: return false;
  }
}

}  // namespace

void run_undefined(Undefined what, const void* data, u64 a, u64 b, void* pc) {
  Fiber& me = Worker::me();
  Worker& worker = *me.worker;
  me.pc = pc;
  Report report = report_of(what, data, a, b);
  report.block = me.block->index;
  report.thread = me.index;
  report.pc = pc;
  // g++ follows pointers to the variables they point into: "too few bytes" of one.
  const u64 stack = reinterpret_cast<u64>(me.stack);
  if (report.kind == ReportKind::index_oob && report.address - stack < kStackBytes) {
    report.kind = ReportKind::local_oob;
    if (const std::string where = nearest_local(report.address, stack); !where.empty()) report.text += ": " + where;
  }
  const Position& at = *static_cast<const Position*>(data);
  if (at.file) report.location = std::string(at.file) + ":" + std::to_string(at.line);
  worker.launch().add(std::move(report));
  if (!harmless(what)) worker.abandon();
}

}  // namespace quern::emu
