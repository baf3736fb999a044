// Requirements on streams, with real jobs: waits, flushes, events, small_batch.
#include <gtest/gtest.h>

#include "npus/vivante/sim/test_examples.h"

namespace skillet::sim::vivante {
namespace {

using namespace test;  // NOLINT

// The example twice; the second job reads the first one's output.
struct TpTwice {
  Words between = kWait, after = kWait, end = kEnd;  // of the two jobs
  uint32_t first_event = 0, second_input = 0x00501000;
  bool first_flushes = true;
  Options options;

  Result<void> run() const {
    constexpr uint32_t kSecond = kDescriptorAddress + 0x1000;
    TestMemory memory;
    memory.add(0x00500000, Bytes(256), "input");
    memory.add(0x00501000, Bytes(512), "between");
    memory.add(0x00502000, Bytes(256), "output");
    Words first = tp_example(), second = tp_example();
    if (!first_flushes) first[12] |= 1U << 30;
    first[13] = 0x00501000;
    second[10] = second_input;
    second[13] = 0x00502000;
    memory.add_words(kDescriptorAddress, first, "first");
    memory.add_words(kSecond, second, "second");
    return execute(
        joined(Words{0x0801042E, kDescriptorAddress | first_event}, between, Words{0x0801042E, kSecond}, after, end),
        memory, options);
  }
};

Options warning_of(Rule rule) {
  Options options;
  options.order.leniency.warn_of(rule);
  return options;
}

TEST(TpUnit, WhatIsNotFlushedIsNotRead) {
  const auto both = TpTwice{}.run();
  EXPECT_TRUE(both.ok()) << both.error().message;
  expect_fault(TpTwice{.first_flushes = false}.run(), "the last TP job of an operation does not flush");
  expect_fault(TpTwice{.first_flushes = false, .options = warning_of(Rule::last_flushes)}.run(),
               "has not been flushed");
  // As on the cores of one operation: they read bytes after their output, in the same buffer.
  EXPECT_TRUE(
      (TpTwice{.between = {}, .first_event = 1, .second_input = 0x00501100, .first_flushes = false}).run().ok());
  expect_fault((TpTwice{.between = {}, .first_event = 1, .first_flushes = false}).run(), "runs at the same time");
  // State vip_flush_control holds back the second job's results.
  const Words held = joined(kWait, Words{0x08010E54, 8});
  expect_fault(TpTwice{.between = held}.run(), "does not flush: vip_flush_control");
  EXPECT_TRUE((TpTwice{.between = held, .options = warning_of(Rule::last_flushes)}).run().ok());
  expect_fault(TpTwice{.end = {}}.run(), "the stream ends without flush_cache");
  expect_fault((TpTwice{.between = joined(kWait, kEnd), .end = {0x08010E03, 0x20}}).run(),
               "the stream ends without flush_cache");
}

TEST(TpUnit, AStreamWaitsAndEndsWithTwoFlushes) {
  expect_fault(TpTwice{.between = {}}.run(), "runs at the same time (rule waits)");
  expect_fault(TpTwice{.after = {}}.run(), "the stream ends while stream word 4: job 1");
  expect_fault(TpTwice{.first_event = 1}.run(), "tp_instruction.in_base_address: 256 bytes at 0x501000 are what");
  expect_fault(TpTwice{.end = kFlush}.run(), "the stream ends after 1 flush_cache of 2");
  for (const TpTwice& lenient : {TpTwice{.between = {}, .options = warning_of(Rule::waits)},
                                 TpTwice{.after = {}, .options = warning_of(Rule::waits)},
                                 TpTwice{.end = kFlush, .options = warning_of(Rule::end_flushes)}}) {
    const auto done = lenient.run();
    EXPECT_TRUE(done.ok()) << done.error().message;
  }
}

// A TP job can read an NN job's output only after a flush.
TEST(NnUnit, WhatIsNotFlushedIsNotRead) {
  struct Row {
    uint32_t word_0, word_3;
    bool flushes;
  };
  for (const Row& row :
       {Row{0xA010010C, 0x00400200, true}, Row{0x2010010C, 0x00400200, false}, Row{0xA010010C, 0x00400208, false}}) {
    const NnExample example(5);
    Words nn = nn_example(), tp = tp_example();
    nn[0] = row.word_0;
    nn[3] = row.word_3;
    tp[10] = 0x00503000;
    tp[13] = 0x00504000;
    TestMemory memory;
    memory.add(0x00501000, example.in, "input");
    memory.add(0x00502000, example.coefficients, "coefficients");
    memory.add(0x00503000, Bytes(512), "between");
    memory.add(0x00504000, Bytes(256), "output");
    memory.add_words(kDescriptorAddress, nn, "first");
    memory.add_words(kDescriptorAddress + 0x1000, tp, "second");
    const Words stream = joined(Words{0x08010428, kDescriptorAddress}, kWait,
                                Words{0x0801042E, kDescriptorAddress + 0x1000}, kWait, kEnd);
    const auto strict = execute(stream, memory);
    EXPECT_EQ(strict.ok(), row.flushes);
    if (!row.flushes) expect_fault(strict, "the last NN job of an operation does not flush");
    const auto done = execute(stream, memory, warning_of(Rule::last_flushes));
    EXPECT_EQ(done.ok(), row.flushes) << row.word_0 << " " << row.word_3;
    if (!row.flushes) expect_fault(done, "written by a NN job that has not been flushed");
  }
}

// State nn_config: without small_batch a job may run beside jobs after its wait.
TEST(NnUnit, WithoutSmallBatchTheNextJobDoesNotWait) {
  for (const bool small_batch : {true, false}) {
    const NnExample example(5);
    Words tp = tp_example();
    tp[10] = 0x00503000;
    tp[13] = 0x00504000;
    TestMemory memory;
    memory.add(0x00501000, example.in, "input");
    memory.add(0x00502000, example.coefficients, "coefficients");
    memory.add(0x00503000, Bytes(512), "between");
    memory.add(0x00504000, Bytes(256), "output");
    memory.add_words(kDescriptorAddress, nn_example(), "first");
    memory.add_words(kDescriptorAddress + 0x1000, tp, "second");
    const Words nn = joined(Words{0x08010E4C, small_batch ? 0x10U : 0U, 0x08010428, kDescriptorAddress}, kWait);
    const Words second = joined(Words{0x0801042E, kDescriptorAddress + 0x1000}, kWait);
    EXPECT_TRUE(execute(joined(nn, kEnd), memory).ok()) << "alone it does no harm";
    EXPECT_TRUE(execute(joined(nn, kFlush, second, kEnd), memory).ok());
    const auto both = execute(joined(nn, second, kEnd), memory);
    EXPECT_EQ(both.ok(), small_batch);
    if (!small_batch) expect_fault(both, "runs at the same time (rule small_batch)");
    EXPECT_TRUE(execute(joined(nn, second, kEnd), memory, warning_of(Rule::small_batch)).ok());
  }
}

}  // namespace
}  // namespace skillet::sim::vivante
