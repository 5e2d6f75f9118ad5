#include "cuda/ties.cuh"

#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <type_traits>

namespace isofold::cuda {
namespace {

constexpr int kThreads = 256;

using Bits64 = unsigned long long;
using Bits128 = unsigned __int128;
struct NoWeight {};

unsigned blocks_of(std::int64_t items) { return static_cast<unsigned>((items + kThreads - 1) / kThreads); }

__device__ std::int64_t thread_number() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

// ---- Which groups, and which rows to refuse ----

struct Cut {
  std::int64_t total;
  std::int64_t rows;
  std::int64_t row_length;
  const std::int64_t* row_offsets;  // ragged, or nullptr
  const std::int64_t* ties;
  std::int64_t groups;
  std::uint32_t* starts;   // a bit a position, 0 to total: an entry of `ties` says so
  std::uint32_t* refused;  // a bit an element: its row is

  __device__ bool inside(std::int64_t at) const { return at >= 0 && at <= total; }
  // Whether the group [begin, end) reaches into another row than the one it begins in. Offsets that do not
  // rise refuse their rows elsewhere; here they only must do no harm.
  __device__ bool crosses_rows(std::int64_t begin, std::int64_t end) const {
    if (row_offsets == nullptr) return begin / row_length != (end - 1) / row_length;
    std::int64_t low = 0;
    std::int64_t high = rows;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (row_offsets[middle] <= begin ? low : high) = middle;
    }
    return begin < row_offsets[high] && row_offsets[high] < end;
  }
};

__device__ bool bit(const std::uint32_t* bits, std::int64_t at) {
  return (bits[at / 32] >> (at % 32) & 1U) != 0;
}

// Returns what the bit was.
__device__ bool set_bit(std::uint32_t* bits, std::int64_t at) {
  const std::uint32_t one = 1U << (at % 32);
  return (atomicOr(bits + at / 32, one) & one) != 0;
}

// The element before a position, where there is one: its row holds the position, if only as its end.
__device__ void refuse_before(const Cut& cut, std::int64_t at) {
  if (at > 0) set_bit(cut.refused, at - 1);
}
__device__ void refuse_after(const Cut& cut, std::int64_t at) {
  if (at < cut.total) set_bit(cut.refused, at);
}

// One thread an entry of the tie offsets. Why an unrefused row [b, e) is cut by one run: from an entry inside
// it, the entries before fall to b and those after rise to e, or a pair of them would not rise or would cross
// the row's ends; two such runs would mark b twice.
__global__ void __launch_bounds__(kThreads) mark_groups(const Cut cut) {
  const std::int64_t g = thread_number();
  if (g > cut.groups) return;
  const std::int64_t at = cut.ties[g];
  if (!cut.inside(at)) return;  // its neighbours see that
  const std::int64_t before = g == 0 ? -1 : cut.ties[g - 1];
  const std::int64_t after = g == cut.groups ? cut.total + 1 : cut.ties[g + 1];
  if (before < 0 || before >= at) refuse_before(cut, at);
  if (after > cut.total || after <= at) {
    refuse_after(cut, at);
  } else if (cut.crosses_rows(at, after)) {
    refuse_after(cut, at);
    refuse_before(cut, after);
  }
  if (set_bit(cut.starts, at)) {
    refuse_before(cut, at);
    refuse_after(cut, at);
  }
}

// One thread a row boundary: one that no entry names lies inside a group, or outside of all.
__global__ void __launch_bounds__(kThreads) check_row_boundaries(const Cut cut) {
  const std::int64_t row = thread_number();
  if (row > cut.rows) return;
  const std::int64_t at = cut.row_offsets != nullptr ? cut.row_offsets[row] : row * cut.row_length;
  if (!cut.inside(at) || bit(cut.starts, at)) return;
  refuse_before(cut, at);
  refuse_after(cut, at);
}

struct CountBits {
  __host__ __device__ std::int64_t operator()(std::uint32_t word) const {
#ifdef __CUDA_ARCH__
    return __popc(word);
#else
    return __builtin_popcount(word);
#endif
  }
};

// ---- Sorting by (group, falling value) ----

// Bits of a value that rise as it falls (or rises); the zeros are neighbours.
template <class V>
struct Ordered;
template <>
struct Ordered<float> {
  static constexpr int kBits = 32;
  static __device__ std::uint32_t bits(float value, bool falling) {
    const auto raw = static_cast<std::uint32_t>(__float_as_int(value));
    const std::uint32_t rising = (raw >> 31) != 0 ? ~raw : raw | 1U << 31;
    return falling ? ~rising : rising;
  }
  static __device__ float value(std::uint32_t bits, bool falling) {
    const std::uint32_t rising = falling ? ~bits : bits;
    return __int_as_float(static_cast<int>((rising >> 31) != 0 ? rising & ~(1U << 31) : ~rising));
  }
};
template <>
struct Ordered<double> {
  static constexpr int kBits = 64;
  static __device__ std::uint64_t bits(double value, bool falling) {
    const auto raw = static_cast<std::uint64_t>(__double_as_longlong(value));
    const std::uint64_t rising = (raw >> 63) != 0 ? ~raw : raw | 1ULL << 63;
    return falling ? ~rising : rising;
  }
  static __device__ double value(std::uint64_t bits, bool falling) {
    const std::uint64_t rising = falling ? ~bits : bits;
    return __longlong_as_double(
        static_cast<long long>((rising >> 63) != 0 ? rising & ~(1ULL << 63) : ~rising));
  }
};

template <class V, class W, class Key>
struct Memory {
  std::uint32_t* starts;
  std::uint32_t* refused;
  std::int64_t words;
  std::int64_t* before;  // a word of `starts`: the bits set before it
  Key* keys[2];
  W* weights[2];
  void* temporary;  // CUB's
  std::size_t temporary_bytes;
  std::int64_t bytes;
};

template <class V, class W, class Key>
__global__ void __launch_bounds__(kThreads)
    make_keys(const V* values, const W* weights, std::int64_t total, bool falling,
              const std::uint32_t* starts, const std::int64_t* before, Key* keys, W* copies) {
  const std::int64_t i = thread_number();
  if (i >= total) return;
  const std::uint32_t up_to_here = starts[i / 32] & (~0U >> (31 - i % 32));
  const std::int64_t group = before[i / 32] + __popc(up_to_here);
  keys[i] = static_cast<Key>(group) << Ordered<V>::kBits | Ordered<V>::bits(values[i], falling);
  if constexpr (!std::is_same_v<W, NoWeight>) copies[i] = weights[i];
}

template <class V, class Key>
__global__ void __launch_bounds__(kThreads)
    take_values(const Key* keys, std::int64_t total, bool falling, const std::uint32_t* refused, V* values) {
  const std::int64_t i = thread_number();
  if (i >= total) return;
  using Bits = decltype(Ordered<V>::bits(V{}, falling));
  values[i] = bit(refused, i) ? static_cast<V>(__longlong_as_double(0x7ff8000000000000LL))
                              : Ordered<V>::value(static_cast<Bits>(keys[i]), falling);
}

// The bits of a key that hold the value or a group's number, which is at most the number of entries.
template <class V>
int key_bits(std::int64_t groups) {
  int bits = Ordered<V>::kBits;
  for (std::int64_t left = groups + 1; left > 0; left /= 2) ++bits;
  return bits;
}

template <class V, class W, class Key>
cudaError_t sort(const Memory<V, W, Key>& memory, void* temporary, std::size_t& bytes, std::int64_t total,
                 int bits, cudaStream_t stream, cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<W>& weights) {
  keys = {memory.keys[0], memory.keys[1]};
  weights = {memory.weights[0], memory.weights[1]};
  if constexpr (std::is_same_v<W, NoWeight>) {
    return cub::DeviceRadixSort::SortKeys(temporary, bytes, keys, total, 0, bits, stream);
  } else {
    return cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, weights, total, 0, bits, stream);
  }
}

template <class V, class W, class Key>
cudaError_t count_groups(const Memory<V, W, Key>& memory, void* temporary, std::size_t& bytes,
                         cudaStream_t stream) {
  const auto counts =
      thrust::make_transform_iterator(static_cast<const std::uint32_t*>(memory.starts), CountBits{});
  return cub::DeviceScan::ExclusiveSum(temporary, bytes, counts, memory.before,
                                       static_cast<int>(memory.words), stream);
}

// Places everything in `scratch`, or only counts its bytes when there is none.
template <class V, class W, class Key>
cudaError_t place(const IsotonicProblem& problem, void* scratch, Memory<V, W, Key>& memory) {
  std::int64_t used = 0;
  const auto take = [&]<class T>(T*& pointer, std::int64_t count) {
    pointer =
        scratch == nullptr ? nullptr : reinterpret_cast<T*>(static_cast<unsigned char*>(scratch) + used);
    used += (count * static_cast<std::int64_t>(sizeof(T)) + 255) / 256 * 256;
  };
  const std::int64_t total = problem.rows.total();
  memory.words = total / 32 + 1;
  take(memory.starts, memory.words);
  take(memory.refused, memory.words);
  take(memory.before, memory.words);
  for (Key*& keys : memory.keys) take(keys, total);
  for (W*& weights : memory.weights) take(weights, std::is_same_v<W, NoWeight> ? 0 : total);

  cub::DoubleBuffer<Key> keys;
  cub::DoubleBuffer<W> weights;
  std::size_t for_sort = 0;
  std::size_t for_count = 0;
  cudaError_t error =
      sort(memory, nullptr, for_sort, total, key_bits<V>(problem.tie_groups), nullptr, keys, weights);
  if (error == cudaSuccess) error = count_groups(memory, nullptr, for_count, nullptr);
  if (error != cudaSuccess) return error;
  memory.temporary_bytes = std::max(for_sort, for_count);
  unsigned char* temporary = nullptr;
  take(temporary, static_cast<std::int64_t>(memory.temporary_bytes));
  memory.temporary = temporary;
  memory.bytes = used;
  return cudaSuccess;
}

template <class V, class W, class Key>
cudaError_t order(const IsotonicProblem& problem, void* scratch, cudaStream_t stream,
                  IsotonicProblem* untied) {
  Memory<V, W, Key> memory{};
  cudaError_t error = place(problem, scratch, memory);
  if (error != cudaSuccess) return error;
  const std::int64_t total = problem.rows.total();
  // `starts` and `refused` lie side by side.
  error = cudaMemsetAsync(memory.starts, 0,
                          static_cast<std::size_t>(reinterpret_cast<unsigned char*>(memory.before) -
                                                   reinterpret_cast<unsigned char*>(memory.starts)),
                          stream);
  if (error != cudaSuccess) return error;
  const Cut cut{total,
                problem.rows.count,
                problem.rows.length,
                problem.rows.offsets,
                problem.tie_offsets,
                problem.tie_groups,
                memory.starts,
                memory.refused};
  mark_groups<<<blocks_of(problem.tie_groups + 1), kThreads, 0, stream>>>(cut);
  check_row_boundaries<<<blocks_of(problem.rows.count + 1), kThreads, 0, stream>>>(cut);
  std::size_t bytes = memory.temporary_bytes;
  error = count_groups(memory, memory.temporary, bytes, stream);
  if (error != cudaSuccess) return error;

  const bool falling = problem.increasing;
  make_keys<V, W, Key><<<blocks_of(total), kThreads, 0, stream>>>(
      static_cast<const V*>(problem.values.data), static_cast<const W*>(problem.weights.data), total, falling,
      memory.starts, memory.before, memory.keys[0], memory.weights[0]);
  error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  cub::DoubleBuffer<Key> keys;
  cub::DoubleBuffer<W> weights;
  bytes = memory.temporary_bytes;
  error =
      sort(memory, memory.temporary, bytes, total, key_bits<V>(problem.tie_groups), stream, keys, weights);
  if (error != cudaSuccess) return error;
  // Where the keys are not.
  auto* values = reinterpret_cast<V*>(keys.Alternate());
  take_values<V, Key>
      <<<blocks_of(total), kThreads, 0, stream>>>(keys.Current(), total, falling, memory.refused, values);

  *untied = problem;
  untied->tie_offsets = nullptr;
  untied->tie_groups = 0;
  untied->values = values;
  if constexpr (!std::is_same_v<W, NoWeight>) untied->weights = weights.Current();
  return cudaGetLastError();
}

// Calls use(value, weight, key) with the types of the problem, and of keys wide enough.
template <class Use>
cudaError_t with_types(const IsotonicProblem& problem, Use use) {
  const auto by_weight = [&](auto value, auto key) {
    switch (problem.weights.type) {
      case DataType::none:
        return use(value, NoWeight{}, key);
      case DataType::float32:
        return use(value, float{}, key);
      case DataType::float64:
        return use(value, double{}, key);
      default:
        return cudaErrorInvalidValue;
    }
  };
  if (problem.values.type == DataType::float64) return by_weight(double{}, Bits128{});
  if (problem.values.type != DataType::float32) return cudaErrorInvalidValue;
  return key_bits<float>(problem.tie_groups) <= 64 ? by_weight(float{}, Bits64{})
                                                   : by_weight(float{}, Bits128{});
}

}  // namespace

cudaError_t tie_scratch(const IsotonicProblem& problem, std::int64_t* bytes) {
  return with_types(problem, [&]<class V, class W, class Key>(V, W, Key) {
    Memory<V, W, Key> memory{};
    const cudaError_t error = place(problem, nullptr, memory);
    *bytes = memory.bytes;
    return error;
  });
}

cudaError_t order_ties(const IsotonicProblem& problem, void* scratch, cudaStream_t stream,
                       IsotonicProblem* untied) {
  return with_types(problem, [&]<class V, class W, class Key>(V, W, Key) {
    return order<V, W, Key>(problem, scratch, stream, untied);
  });
}

}  // namespace isofold::cuda
