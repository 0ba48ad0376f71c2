// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Files of safetensors and folders of them, and everything that can be wrong with one.
#include "checkpoint.h"

#include <sys/stat.h>

#include <cmath>
#include <cstring>

#include "published_configs.h"
#include "write_checkpoint.h"

namespace engine {

using quern::TensorView;

namespace {

/// The bytes of a file of safetensors with this header.
std::string file_of(const std::string& header, size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += char(u64(header.size()) >> (8 * i) & 255);
  bytes += header;
  for (size_t i = 0; i < data_bytes; ++i) bytes += char(i * 7 + 1);
  return bytes;
}
/// What the constructor says of a folder with this file alone.
std::string unreadable(const std::string& bytes) {
  const Folder f;
  f.write("model.safetensors", bytes);
  return refusal([&] { Checkpoint c(f.path); }, f.at("model.safetensors"));
}
std::string unreadable(const std::string& header, size_t data_bytes) { return unreadable(file_of(header, data_bytes)); }

TEST(CheckpointFiles, WrittenAndRead) {
  const Folder f;
  std::vector<float> f32 = {1, 2, 3, 4, 5, 6};
  std::vector<uint16_t> bf16 = {0x3f80, 0x4000, 0x4040}, f16 = {0x3c00};
  std::vector<u8> fp8 = {0x38, 0x40, 0x44, 0x48, 0x4a};
  write_safetensors(f.at("model.safetensors"), {{"a.fp8", TensorView(fp8.data(), DType::e4m3, {5})},
                                                {"b.f16", TensorView(f16.data(), DType::f16, {1, 1})},
                                                {"c.bf16", TensorView(bf16.data(), DType::bf16, {3, 1})},
                                                {"d.f32", TensorView(f32.data(), DType::f32, {2, 3})},
                                                {"e.empty", TensorView(nullptr, DType::bf16, {0, 8})}});
  Checkpoint c(f.path);
  EXPECT_EQ(c.unused(), (std::vector<std::string>{"a.fp8", "b.f16", "c.bf16", "d.f32", "e.empty"}));
  const TensorView d = c.get("d.f32", {2, 3});
  EXPECT_EQ(d.dtype, DType::f32);
  EXPECT_EQ(d.device.type, quern::DeviceType::cpu);
  EXPECT_TRUE(d.contiguous());
  EXPECT_EQ(std::memcmp(d.data, f32.data(), 24), 0);
  EXPECT_EQ(std::memcmp(c.get("c.bf16", {3, 1}).data, bf16.data(), 6), 0);
  EXPECT_EQ(c.get("c.bf16", {3, 1}).dtype, DType::bf16);
  EXPECT_EQ(std::memcmp(c.get("b.f16", {1, 1}).data, f16.data(), 2), 0);
  EXPECT_EQ(c.get("b.f16", {1, 1}).dtype, DType::f16);
  EXPECT_EQ(std::memcmp(c.get("a.fp8", {5}).data, fp8.data(), 5), 0);
  EXPECT_EQ(c.get("a.fp8", {5}).dtype, DType::e4m3);
  EXPECT_EQ(c.unused(), std::vector<std::string>{"e.empty"});
  EXPECT_EQ(c.get("e.empty", {0, 8}).numel(), 0);
  EXPECT_TRUE(c.unused().empty());
  EXPECT_TRUE(c.has("d.f32"));
  EXPECT_FALSE(c.has("d"));
}

TEST(CheckpointFiles, GetRefusesOtherNamesAndShapes) {
  const Folder f;
  std::vector<float> x(6);
  std::map<std::string, TensorView> tensors;
  for (const char* name : {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
                           "model.layers.1.self_attn.q_proj.weight", "model.layers.0.mlp.up_proj.weight", "lm_head.weight"})
    tensors[name] = TensorView(x.data(), DType::f32, {2, 3});
  write_safetensors(f.at("model.safetensors"), tensors);
  Checkpoint c(f.path);
  EXPECT_EQ(
      refusal([&] { c.get("model.layers.0.self_attn.q_proj.bias", {2}); }, f.path),
      "model.layers.0.self_attn.q_proj.bias is not in the checkpoint | one of its tensors; near are model.layers.0.self_attn.q_proj.weight, "
      "model.layers.0.self_attn.k_proj.weight, model.layers.1.self_attn.q_proj.weight");
  EXPECT_EQ(refusal([&] { c.get("xyz", {2}); }, f.path), "xyz is not in the checkpoint | one of its 5 tensors");
  const std::pair<std::vector<i64>, const char*> others[] = {{{3, 2}, "[3, 2]"}, {{6}, "[6]"},       {{2, 3, 1}, "[2, 3, 1]"},
                                                             {{}, "[]"},         {{2, 4}, "[2, 4]"}, {{2, -3}, "[2, -3]"}};
  for (const auto& [shape, text] : others)
    EXPECT_EQ(refusal([&, &shape = shape] { c.get("lm_head.weight", shape); }, f.at("model.safetensors")),
              "lm_head.weight has shape [2, 3] | " + std::string(text));
  EXPECT_EQ(c.unused().size(), 5u) << "a refused get is no use";
}

TEST(CheckpointFiles, OtherDtypesAreRefusedByGetAlone) {
  const Folder f;
  f.write("model.safetensors", file_of(R"({"__metadata__": {"format": "pt"},
    "i": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}, "n": {"dtype": "F4", "shape": [4], "data_offsets": [8, 10]},
    "r": {"dtype": "BF16", "shape": [1,1,1,1,1,1], "data_offsets": [10, 12]}, "x": {"dtype": "BF16", "shape": [], "data_offsets": [12, 14]}})",
                                       14));
  Checkpoint c(f.path);
  EXPECT_TRUE(c.has("i") && c.has("n") && c.has("r"));
  EXPECT_FALSE(c.has("__metadata__"));
  EXPECT_EQ(c.unused(), (std::vector<std::string>{"i", "n", "r", "x"}));
  EXPECT_EQ(refusal([&] { c.get("i", {1}); }, f.at("model.safetensors")), "i is I64 | BF16, F16, F32 or F8_E4M3, of 5 dims at most");
  EXPECT_EQ(refusal([&] { c.get("n", {4}); }, f.at("model.safetensors")), "n is F4 | BF16, F16, F32 or F8_E4M3, of 5 dims at most");
  EXPECT_EQ(refusal([&] { c.get("r", {1, 1, 1, 1, 1, 1}); }, f.at("model.safetensors")),
            "r has shape [1, 1, 1, 1, 1, 1] | BF16, F16, F32 or F8_E4M3, of 5 dims at most");
  EXPECT_EQ(c.get("x", {}).rank, 0);
}

TEST(CheckpointFiles, ElementsAcrossBoundariesAreCopied) {
  for (const char* pad : {"", " ", "  ", "   "}) {
    const Folder f;
    const std::string bytes = file_of(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})" + std::string(pad), 8);
    f.write("model.safetensors", bytes);
    Checkpoint c(f.path);
    const TensorView w = c.get("w", {2}), again = c.get("w", {2});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(w.data) % 4, 0u);
    EXPECT_EQ(w.data, again.data);
    EXPECT_EQ(std::memcmp(w.data, bytes.data() + bytes.size() - 8, 8), 0);
  }
}

TEST(CheckpointFiles, Headers) {
  constexpr const char* good = R"({"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}})";
  EXPECT_EQ(unreadable(good, 4), "taken");
  EXPECT_EQ(unreadable(""), " has 0 bytes | 8 at least: the length of a header");
  EXPECT_EQ(unreadable("1234567"), " has 7 bytes | 8 at least: the length of a header");
  EXPECT_EQ(unreadable(file_of(good, 4).substr(0, 40)), " states a header of 62 bytes | 2 to 32, as the file has 40");
  EXPECT_EQ(unreadable(std::string(8, '\xff') + good), " states a header of 18446744073709551615 bytes | 2 to 62, as the file has 70");
  EXPECT_EQ(unreadable(std::string("\1\0\0\0\0\0\0\0{}", 10)), " states a header of 1 bytes | 2 to 2, as the file has 10");
  EXPECT_EQ(unreadable("[1]", 0), " has a header that does not begin with { | a file of safetensors");
  EXPECT_EQ(unreadable("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n").find(" states a header of "), 0u);
  EXPECT_EQ(unreadable("{\"w\": garbage", 0).substr(0, 12), " is no JSON:");
  EXPECT_EQ(unreadable(std::string("{\"w\0\": 1}", 9), 0).substr(0, 12), " is no JSON:");
  EXPECT_EQ(unreadable("{\"a\":" + std::string(100000, '['), 0), " nests deeper than 32 objects and lists | less");
  EXPECT_EQ(
      unreadable(
          R"({"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}, "w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}})",
          4),
      "w stands twice in one object | once");
  EXPECT_EQ(unreadable(R"({"__metadata__": 3})", 0), "__metadata__ is 3 | an object of strings");
  EXPECT_EQ(unreadable("{}", 0), "taken");
}

TEST(CheckpointFiles, Entries) {
  const auto entry = [](const char* text, size_t bytes = 4) { return unreadable("{\"w\": " + std::string(text) + "}", bytes); };
  const std::string whole = "an object with dtype, shape and data_offsets", list = "a list of whole numbers from 0",
                    within = "[begin, end] within the file's 4 bytes of data";
  EXPECT_EQ(entry("[]"), "w is [] | " + whole);
  EXPECT_EQ(entry(R"({"shape": [2], "data_offsets": [0, 4]})"), "w has no dtype | " + whole);
  EXPECT_EQ(entry(R"({"dtype": "BF16", "data_offsets": [0, 4]})"), "w has no shape | " + whole);
  EXPECT_EQ(entry(R"({"dtype": "BF16", "shape": [2]})"), "w has no data_offsets | " + whole);
  EXPECT_EQ(entry(R"({"dtype": 16, "shape": [2], "data_offsets": [0, 4]})"), "w has dtype 16 | a string");
  for (const char* shape : {"2", "[-2]", "[2.0]", "[\"2\"]", "[[2]]", "[9223372036854775808]", "{\"a\":2}"})
    EXPECT_EQ(entry((R"({"dtype": "BF16", "data_offsets": [0, 4], "shape": )" + std::string(shape) + "}").c_str()),
              "w has shape " + std::string(shape) + " | " + list);
  for (const char* shape : {"[4294967296,4294967296]", "[2147483648,2147483648]", "[0,9223372036854775807,9223372036854775807]",
                            "[4294967296,4294967296,4294967296,2]"})
    EXPECT_EQ(entry((R"({"dtype": "BF16", "data_offsets": [0, 4], "shape": )" + std::string(shape) + "}").c_str()),
              "w has shape " + std::string(shape) + " | at most 2^60 elements");
  for (const char* offsets : {"4", "[4]", "[0,2,4]", "[0,\"4\"]", "[-1,4]", "[0,4.0]", "[4,0]", "[0,5]",
                              "[18446744073709551612,18446744073709551615]", "{\"a\":0,\"b\":4}"})
    EXPECT_EQ(entry((R"({"dtype": "BF16", "shape": [2], "data_offsets": )" + std::string(offsets) + "}").c_str()),
              "w has data_offsets " + std::string(offsets) + " | " + within);
  EXPECT_EQ(entry(R"({"dtype": "BF16", "shape": [3], "data_offsets": [0, 4]})"), "w has 4 bytes | 6 of BF16 [3]");
  EXPECT_EQ(entry(R"({"dtype": "F32", "shape": [], "data_offsets": [0, 2]})"), "w has 2 bytes | 4 of F32 []");
  EXPECT_EQ(entry(R"({"dtype": "BF16", "shape": [0], "data_offsets": [0, 4]})"), "w has 4 bytes | 0 of BF16 [0]");
  EXPECT_EQ(entry(R"({"dtype": "I32", "shape": [2], "data_offsets": [0, 4]})"), "w has 4 bytes | 8 of I32 [2]")
      << "dtypes that no get() takes are judged too";
}

TEST(CheckpointFiles, DataHasNoHolesAndNoOverlaps) {
  const auto two = [](const char* a, const char* b, size_t bytes) {
    return unreadable(R"({"a": {"dtype": "BF16", "shape": [2], "data_offsets": )" + std::string(a) +
                          R"(}, "b": {"dtype": "BF16", "shape": [2], "data_offsets": )" + b + "}}",
                      bytes);
  };
  const std::string why = ", where the tensor before it ends: data has no holes and no overlaps";
  EXPECT_EQ(two("[4,8]", "[0,4]", 8), "taken");
  EXPECT_EQ(two("[0,4]", "[2,6]", 6), "b begins at byte 2 of the data | 4" + why);
  EXPECT_EQ(two("[0,4]", "[0,4]", 4), "b begins at byte 0 of the data | 4" + why);
  EXPECT_EQ(two("[0,4]", "[6,10]", 10), "b begins at byte 6 of the data | 4" + why);
  EXPECT_EQ(two("[2,6]", "[6,10]", 10), "a begins at byte 2 of the data | 0" + why);
  EXPECT_EQ(two("[0,4]", "[4,8]", 9), " has 9 bytes of data | 8, where its last tensor ends");
  EXPECT_EQ(two("[0,4]", "[4,8]", 7), "b has data_offsets [4,8] | [begin, end] within the file's 7 bytes of data") << "truncated";
}

// ---- folders ------------------------------------------------------------------------------------------------------------

TEST(CheckpointFolder, NoFile) {
  const Folder f;
  EXPECT_EQ(refusal([&] { Checkpoint c(f.path); }, f.path), " has no model.safetensors and no model.safetensors.index.json | one of them");
  std::filesystem::create_directory(f.at("model.safetensors"));
  EXPECT_EQ(refusal([&] { Checkpoint c(f.path); }, f.at("model.safetensors")), " is no regular file | a file of safetensors");
  std::filesystem::remove(f.at("model.safetensors"));
  ASSERT_EQ(::mkfifo(f.at("model.safetensors").c_str(), 0600), 0);
  EXPECT_EQ(refusal([&] { Checkpoint c(f.path); }, f.at("model.safetensors")), " is no regular file | a file of safetensors");
  std::filesystem::remove(f.at("model.safetensors"));
  std::filesystem::create_symlink("nowhere", f.at("model.safetensors"));
  EXPECT_EQ(refusal([&] { Checkpoint c(f.path); }, f.at("model.safetensors")),
            " cannot be opened: No such file or directory | a file of safetensors");
}

struct Sharded : Folder {
  std::vector<float> x = {1, 2, 3}, y = {4, 5}, z = {6};
  Sharded() {
    write_safetensors(at("1.safetensors"), {{"x", TensorView(x.data(), DType::f32, {3})}});
    write_safetensors(at("2.safetensors"), {{"y", TensorView(y.data(), DType::f32, {2})}, {"z", TensorView(z.data(), DType::f32, {1})}});
  }
  std::string with_index(const std::string& index, const std::string& op) const {
    write("model.safetensors.index.json", index);
    return refusal([&] { Checkpoint c(path); }, at(op));
  }
};
constexpr const char* kIndex = "model.safetensors.index.json";

TEST(CheckpointFolder, Sharded) {
  const Sharded f;
  f.write(kIndex, R"({"metadata": {"total_size": 24}, "weight_map": {"x": "1.safetensors", "y": "2.safetensors", "z": "2.safetensors"}})");
  Checkpoint c(f.path);
  EXPECT_EQ(c.unused(), (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(std::memcmp(c.get("x", {3}).data, f.x.data(), 12), 0);
  EXPECT_EQ(std::memcmp(c.get("y", {2}).data, f.y.data(), 8), 0);
  EXPECT_EQ(refusal([&] { c.get("z", {2}); }, f.at("2.safetensors")), "z has shape [1] | [2]");
  EXPECT_EQ(refusal([&] { c.get("x", {2}); }, f.at("1.safetensors")), "x has shape [3] | [2]");
}

TEST(CheckpointFolder, LinksAreFollowed) {  // as in the cache of Hugging Face's hub
  const Sharded f;
  const Folder snapshot;
  std::filesystem::create_symlink(f.at("1.safetensors"), snapshot.at("model.safetensors"));
  EXPECT_TRUE(Checkpoint(snapshot.path).has("x"));
}

TEST(CheckpointFolder, BrokenIndex) {
  const Sharded f;
  EXPECT_EQ(f.with_index("{", kIndex).substr(0, 12), " is no JSON:");
  EXPECT_EQ(f.with_index("[]", kIndex), "weight_map is missing | an object of tensors and their files");
  EXPECT_EQ(f.with_index("{}", kIndex), "weight_map is missing | an object of tensors and their files");
  EXPECT_EQ(f.with_index(R"({"weight_map": []})", kIndex), "weight_map is [] | an object of tensors and their files");
  EXPECT_EQ(f.with_index(R"({"weight_map": {}})", kIndex), "weight_map is {} | an object of tensors and their files");
  for (const char* file :
       {"\"../1.safetensors\"", "\"/etc/passwd\"", "\"a/1.safetensors\"", "\"..\"", "\"\"", "7", "null", "\"1.safetensors\\u0000\""})
    EXPECT_EQ(f.with_index(R"({"weight_map": {"x": )" + std::string(file) + "}}", kIndex),
              "x is in " + std::string(file) + " | a file of the same folder: a name without / and ..");
  EXPECT_EQ(f.with_index(R"({"weight_map": {"x": "1.safetensors", "x": "2.safetensors"}})", kIndex), "x stands twice in one object | once");
  EXPECT_EQ(f.with_index(R"({"weight_map": {"x": "3.safetensors"}})", "3.safetensors"),
            " cannot be opened: No such file or directory | a file of safetensors");
  EXPECT_EQ(f.with_index(R"({"weight_map": {"x": "1.safetensors", "w": "1.safetensors"}})", "1.safetensors"),
            "w is not in this file | a tensor that the index places here");
  EXPECT_EQ(f.with_index(R"({"weight_map": {"x": "1.safetensors", "y": "1.safetensors", "z": "2.safetensors"}})", "2.safetensors"),
            "y is in this file | 1.safetensors, where the index places it");
  write_safetensors(f.at("3.safetensors"), {{"x", TensorView(const_cast<float*>(f.x.data()), DType::f32, {3})},
                                            {"v", TensorView(const_cast<float*>(f.x.data()), DType::f32, {3})}});
  EXPECT_EQ(f.with_index(R"({"weight_map": {"x": "1.safetensors", "v": "3.safetensors"}})", "3.safetensors"),
            "x is in this file and in 1.safetensors | one of them");
}

TEST(CheckpointFolder, TheSingleFileGoesFirst) {
  const Sharded f;
  f.write(kIndex, "{");
  write_safetensors(f.at("model.safetensors"), {{"w", TensorView(const_cast<float*>(f.x.data()), DType::f32, {3})}});
  EXPECT_TRUE(Checkpoint(f.path).has("w"));
}

// ---- the writer ---------------------------------------------------------------------------------------------------------

TEST(WriteCheckpoint, Refuses) {
  const Folder f;
  std::vector<float> x(6);
  const std::string file = f.at("a.safetensors");
  const auto written = [&](const std::string& name, const TensorView& view) {
    return refusal([&] { write_safetensors(file, {{name, view}}); }, file);
  };
  const TensorView view(x.data(), DType::f32, {2, 3});
  EXPECT_EQ(written("w", view.slice(1, 0, 2)), "w is not contiguous | a contiguous tensor");
  EXPECT_EQ(written("w", TensorView(x.data(), DType::f32, {2, 3}, {quern::DeviceType::cuda, 0})),
            "w is on a device | a tensor of host memory");
  EXPECT_EQ(written("w", TensorView()), "w has no data | a tensor of host memory");
  EXPECT_EQ(written("__metadata__", view), "__metadata__ is a tensor | another name: this one is safetensors' own");
  EXPECT_EQ(written("\xff", view).substr(0, 22), " cannot have a header:");
  EXPECT_FALSE(std::filesystem::exists(file));
  try {
    write_safetensors(f.at("no/such/file"), {{"w", view}});
    ADD_FAILURE() << "taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::device);
    EXPECT_EQ(e.op(), f.at("no/such/file"));
  }
}

TEST(WriteCheckpoint, KeepsElementsAtTheirBoundaries) {
  const Folder f;
  std::vector<double> memory(16);
  std::map<std::string, TensorView> tensors;
  for (int t = 0; t < quern::kDTypeCount; ++t) tensors[std::string(size_t(t + 1), 'w')] = TensorView(memory.data(), DType(t), {t + 1});
  write_safetensors(f.at("model.safetensors"), tensors);
  std::ifstream in(f.at("model.safetensors"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  u64 length = 0;
  for (int i = 0; i < 8; ++i) length |= u64(u8(bytes[size_t(i)])) << (8 * i);
  EXPECT_EQ(length % 8, 0u);
  const Json header = Json::parse(bytes.substr(8, length));
  EXPECT_EQ(header.size(), size_t(quern::kDTypeCount));
  for (const auto& [name, view] : tensors) EXPECT_EQ(header[name]["data_offsets"][0].get<u64>() % u64(size_of(view.dtype)), 0u) << name;
  Checkpoint c(f.path);
  EXPECT_EQ(c.unused().size(), size_t(quern::kDTypeCount));
}

// ---- random faults ------------------------------------------------------------------------------------------------------

u64 sum_of(const TensorView& v) {
  u64 sum = 0;
  for (i64 i = 0; i < v.numel() * size_of(v.dtype); ++i) sum += static_cast<const u8*>(v.data)[i];
  return sum;
}

TEST(Fuzz, HeadersGiveErrorsAlone) {
  const Folder f;
  // The data ends with the page, so that a read behind it is no read of the mapping.
  std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[20,10],"data_offsets":[0,800]},)"
      R"("b":{"dtype":"BF16","shape":[5,4,5],"data_offsets":[800,1000]},)"
      R"("c":{"dtype":"F8_E4M3","shape":[1000],"data_offsets":[1000,2000]},"d":{"dtype":"F16","shape":[0,3],"data_offsets":[2000,2000]},)"
      R"("e":{"dtype":"I64","shape":[10],"data_offsets":[2000,2080]}})";
  header.resize(4096 - 2080 - 8, ' ');
  const std::string good = file_of(header, 2080);
  const size_t header_end = header.find_last_not_of(' ') + 9;
  std::mt19937_64 random(1);
  int taken = 0, refused = 0;
  u64 sum = 0;
  for (int round = 0; round < fuzz_rounds(); ++round) {
    f.write("model.safetensors", mutated(good, header_end, random));
    try {
      Checkpoint c(f.path);
      ++taken;
      for (const std::string& name : c.unused())
        for (const std::vector<i64>& shape : {std::vector<i64>{20, 10}, {5, 4, 5}, {1000}, {0, 3}, {10}}) try {
            sum += sum_of(c.get(name, shape));
            break;
          } catch (const Error&) {}
    } catch (const Error& e) {
      ++refused;
      ASSERT_EQ(e.kind(), ErrorKind::value) << e.what();
    }
  }
  EXPECT_GT(taken, fuzz_rounds() / 200);
  EXPECT_GT(refused, fuzz_rounds() / 2);
  EXPECT_GT(sum, 0u);
}

}  // namespace
}  // namespace engine
