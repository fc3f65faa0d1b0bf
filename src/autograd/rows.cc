// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Functions that only move numbers: reshape, split, concat, transpose, gather, scatter, embedding.
#include "stepwell/ops/rows.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "stepwell/autograd/functions.h"
#include "stepwell/ops/elementwise.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"

namespace stepwell {

namespace {

// Copies a tensor of evenly spaced rows into another of as many elements and the same last extent.
void copy_rows(Context& ctx, const Tensor& from, const Tensor& to) {
  dispatch_float(from.dtype(), "copy_rows",
                 [&]<class T>(T) { ops::copy_rows<T>(ctx, from.rows<const T>(), to.rows<T>()); });
}

}  // namespace

Variable reshape(Context& ctx, const Variable& x, const Shape& shape) {
  autograd::check_float("reshape", "x", x);
  STEPWELL_CHECK(shape.size() == x.value().numel(), "reshape",
                 "x " + x.shape().to_string() + " to " + shape.to_string() + ", expected as many elements");
  // A slice keeps its memory where only its leading dimensions change.
  const bool same_last = x.shape().rank() > 0 && shape.rank() > 0 && x.size(-1) == shape[-1];
  const Tensor source = same_last ? autograd::foldable(ctx, x.value()) : x.value().contiguous(ctx);
  const Tensor y = source.reshape(shape);
  if (kRecords && recording({&x})) {
    return record(y, {x}, [old = x.shape()](Backward& b) {
      if (b.grad().defined()) b.give(0, b.grad().reshape(old));
    });
  }
  return y;
}

namespace {

// The adjoint of taking parts of the last dimension: the parts' gradients side by side, zeros where none arrived.
void split_backward(Backward& b, const Shape& shape, DType dtype, std::span<const std::int64_t> widths) {
  const Tensor whole = Tensor::empty(b.ctx, shape, dtype);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const Tensor part = whole.slice(-1, start, widths[i]);
    const Tensor& g = b.grad(static_cast<int>(i));
    copy_rows(b.ctx, g.defined() ? g : Tensor::zeros(b.ctx, part.shape(), dtype), part);
    start += widths[i];
  }
  b.give(0, whole);
}

void check_split(const Variable& x, std::span<const std::int64_t> widths) {
  autograd::check_float("split", "x", x);
  const auto negative = std::find_if(widths.begin(), widths.end(), [](std::int64_t w) { return w < 0; });
  STEPWELL_CHECK(negative == widths.end(), "split", "width " + std::to_string(*negative) + ", expected ≥ 0");
  const std::int64_t total = std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
  STEPWELL_CHECK(
      x.shape().rank() >= 1 && total == x.size(-1), "split",
      "widths of " + std::to_string(total) + " in all for x " + x.shape().to_string() + ", expected its last extent");
}

}  // namespace

std::vector<Variable> split(Context& ctx, const Variable& x, std::span<const std::int64_t> widths) {
  check_split(x, widths);
  const Tensor source = autograd::foldable(ctx, x.value());
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t width : widths) {
    parts.push_back(source.slice(-1, start, width));
    start += width;
  }
  if (kRecords && recording({&x})) {
    std::vector<std::int64_t> kept(widths.begin(), widths.end());
    return record(parts, std::span(&x, 1),
                  [shape = x.shape(), dtype = x.dtype(), kept](Backward& b) { split_backward(b, shape, dtype, kept); });
  }
  return {parts.begin(), parts.end()};
}

std::pair<Variable, Variable> split2(Context& ctx, const Variable& x, std::int64_t first) {
  const std::int64_t last = x.shape().rank() >= 1 ? x.size(-1) : 0;
  const std::array<std::int64_t, 2> widths = {first, last - first};
  check_split(x, widths);
  const Tensor source = autograd::foldable(ctx, x.value());
  const std::array<Tensor, 2> parts = {source.slice(-1, 0, first), source.slice(-1, first, last - first)};
  if (kRecords && recording({&x})) {
    std::vector<Variable> both = record(
        parts, std::span(&x, 1),
        [shape = x.shape(), dtype = x.dtype(), widths](Backward& b) { split_backward(b, shape, dtype, widths); });
    return {std::move(both[0]), std::move(both[1])};
  }
  return {parts[0], parts[1]};
}

Variable concat(Context& ctx, std::span<const Variable> parts) {
  const char* where = "concat";
  STEPWELL_CHECK(!parts.empty(), where, "no parts, expected at least one");
  autograd::check_float(where, "part 0", parts[0]);
  std::int64_t width = 0;
  for (const Variable& part : parts) {
    autograd::check_dtype(where, "a part", part, "part 0", parts[0]);
    const bool fits = part.defined() && part.shape().rank() >= 1 &&
                      autograd::with_last(part.shape(), 0) == autograd::with_last(parts[0].shape(), 0);
    STEPWELL_CHECK(fits, where,
                   "parts " + parts[0].shape().to_string() + " and " + part.shape().to_string() +
                       ", expected shapes equal but for the last extent");
    width += part.size(-1);
  }
  const Tensor whole = Tensor::empty(ctx, autograd::with_last(parts[0].shape(), width), parts[0].dtype());
  std::int64_t start = 0;
  for (const Variable& part : parts) {
    copy_rows(ctx, autograd::foldable(ctx, part.value()), whole.slice(-1, start, part.size(-1)));
    start += part.size(-1);
  }
  if (kRecords && recording(parts)) {
    std::vector<std::int64_t> widths;
    for (const Variable& part : parts) widths.push_back(part.size(-1));
    return record(std::span(&whole, 1), parts,
                  [widths](Backward& b) {
                    if (!b.grad().defined()) return;
                    std::int64_t at = 0;
                    for (std::size_t i = 0; i < widths.size(); at += widths[i], ++i) {
                      const int input = static_cast<int>(i);
                      if (b.wants(input)) b.give(input, b.grad().slice(-1, at, widths[i]).contiguous(b.ctx));
                    }
                  })
        .front();
  }
  return whole;
}

Variable repeat_heads(Context& ctx, const Variable& x, std::int64_t count) {
  const char* where = "repeat_heads";
  autograd::check_float(where, "x", x);
  STEPWELL_CHECK(x.shape().rank() == 3 && count >= 1, where,
                 "x " + x.shape().to_string() + " repeated " + std::to_string(count) +
                     " times, expected x [L, heads, width] and a count of at least 1");
  if (count == 1) return x;
  const std::int64_t width = x.size(2), rows = x.size(0) * x.size(1);
  const Tensor source = autograd::foldable(ctx, x.value());
  const Tensor whole = Tensor::empty(ctx, {x.size(0), x.size(1) * count, width}, x.dtype());
  const Tensor side_by_side = whole.reshape({rows, count * width});
  for (std::int64_t i = 0; i < count; ++i) copy_rows(ctx, source, side_by_side.slice(-1, i * width, width));
  if (kRecords && recording({&x})) {
    return record(whole, {x}, [count, width, rows, shape = x.shape()](Backward& b) {
      if (!b.grad().defined()) return;
      const Tensor parts = b.grad().reshape({rows, count * width});
      const Tensor total = parts.slice(-1, 0, width).clone(b.ctx);
      for (std::int64_t i = 1; i < count; ++i) {
        ops::accumulate(b.ctx, parts.slice(-1, i * width, width).contiguous(b.ctx), 1, total);
      }
      b.give(0, total.reshape(shape));
    });
  }
  return whole;
}

namespace {

Tensor transposed(Context& ctx, const Tensor& x) {
  Shape shape = x.shape();
  std::swap(shape[-1], shape[-2]);
  const Tensor y = Tensor::empty(ctx, shape, x.dtype());
  const Tensor source = x.contiguous(ctx);
  const std::int64_t m = x.size(-2), n = x.size(-1), batch = m * n == 0 ? 0 : x.numel() / (m * n);
  dispatch_float(x.dtype(), "transpose_last2", [&]<class T>(T) {
    ops::transpose<T>(ctx, source.reshape({batch, m, n}).view<const T, 3>(), y.reshape({batch, n, m}).view<T, 3>());
  });
  return y;
}

}  // namespace

Variable transpose_last2(Context& ctx, const Variable& x) {
  autograd::check_float("transpose_last2", "x", x);
  STEPWELL_CHECK(x.shape().rank() >= 2, "transpose_last2",
                 "x " + x.shape().to_string() + ", expected at least two dimensions");
  const Tensor y = transposed(ctx, x.value());
  if (kRecords && recording({&x})) {
    return record(y, {x}, [](Backward& b) {
      if (b.grad().defined()) b.give(0, transposed(b.ctx, b.grad()));
    });
  }
  return y;
}

namespace {

// x as [first extent, everything else].
Tensor as_rows(const Tensor& x) {
  std::int64_t width = 1;
  for (int i = 1; i < x.rank(); ++i) width *= x.size(i);
  return x.reshape({x.size(0), width});
}

Shape with_first(const Shape& shape, std::int64_t first) {
  Shape result = shape;
  result[0] = first;
  return result;
}

// The three row movers of ops/rows.h on tensors whose first dimension counts rows.
enum class Move { Gather, Place, Add };
Tensor move_rows(Context& ctx, Move move, const Tensor& x, const Tensor& index, std::int64_t rows) {
  const Tensor y = Tensor::empty(ctx, with_first(x.shape(), rows), x.dtype());
  const Tensor source = as_rows(x.contiguous(ctx)), target = as_rows(y);
  const auto* at = index.data<std::int64_t>();
  dispatch_float(x.dtype(), "rows", [&]<class T>(T) {
    switch (move) {
      case Move::Gather: ops::gather_rows<T>(ctx, source.view<const T, 2>(), at, target.view<T, 2>()); break;
      case Move::Place: ops::place_rows<T>(ctx, source.view<const T, 2>(), at, target.view<T, 2>()); break;
      case Move::Add: ops::add_rows<T>(ctx, source.view<const T, 2>(), at, target.view<T, 2>()); break;
    }
  });
  return y;
}

Variable gather(Context& ctx, const Variable& x, const Tensor& index, const Shape& shape) {
  const Tensor y = move_rows(ctx, Move::Gather, x.value(), index, index.numel()).reshape(shape);
  if (kRecords && recording({&x})) {
    return record(y, {x}, [index, row = x.shape()](Backward& b) {
      if (!b.grad().defined()) return;
      const Tensor g = b.grad().reshape(with_first(row, index.numel()));
      b.give(0, move_rows(b.ctx, Move::Add, g, index, row[0]));
    });
  }
  return y;
}

void check_rows(const char* where, const Variable& x, const Tensor& index) {
  autograd::check_float(where, "x", x);
  STEPWELL_CHECK(
      x.shape().rank() >= 1 && index.rank() == 1, where,
      "x " + x.shape().to_string() + " and index " + index.shape().to_string() + ", expected x [n, ...] and index [m]");
}

}  // namespace

Variable gather_rows(Context& ctx, const Variable& x, const Tensor& index) {
  check_rows("gather_rows", x, index);
  const Tensor entries = autograd::check_index(ctx, "gather_rows", "index", index, x.size(0));
  return gather(ctx, x, entries, with_first(x.shape(), entries.numel()));
}

Variable scatter_rows(Context& ctx, const Variable& x, const Tensor& index, std::int64_t n) {
  const char* where = "scatter_rows";
  check_rows(where, x, index);
  STEPWELL_CHECK(n >= 0 && index.numel() == x.size(0), where,
                 std::to_string(index.numel()) + " indices for x " + x.shape().to_string() + " into " +
                     std::to_string(n) + " rows, expected one for each row of x");
  const Tensor entries = autograd::check_index(ctx, where, "index", index, n);
  {
    ArenaScope scope(ctx.scratch());
    bool* seen = ctx.scratch().allocate<bool>(n);
    std::fill_n(seen, n, false);
    for (const std::int64_t entry : entries.span<std::int64_t>()) {
      STEPWELL_CHECK(!seen[entry], where, "index " + std::to_string(entry) + " occurs twice, expected distinct ones");
      seen[entry] = true;
    }
  }
  const Tensor y = move_rows(ctx, Move::Place, x.value(), entries, n);
  if (kRecords && recording({&x})) {
    return record(y, {x}, [entries](Backward& b) {
      if (b.grad().defined()) b.give(0, move_rows(b.ctx, Move::Gather, b.grad(), entries, entries.numel()));
    });
  }
  return y;
}

Variable embedding(Context& ctx, const Variable& weight, const Tensor& ids) {
  const char* where = "embedding";
  autograd::check_float(where, "weight", weight);
  STEPWELL_CHECK(weight.shape().rank() == 2 && ids.rank() < Shape::kMaxRank, where,
                 "weight " + weight.shape().to_string() + " and ids " + ids.shape().to_string() +
                     ", expected weight [vocab, width]");
  const Tensor entries = autograd::check_index(ctx, where, "id", ids, weight.size(0));
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  const auto given = ids.shape().extents();
  std::copy(given.begin(), given.end(), extents.begin());
  extents[given.size()] = weight.size(1);
  return gather(ctx, weight, entries, Shape(std::span<const std::int64_t>(extents.data(), given.size() + 1)));
}

}  // namespace stepwell
