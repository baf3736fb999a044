#!/usr/bin/env python3
"""Compares tflite_abi.h with the real headers of TFLite 2.9: the fields that Skillet uses must have the same offsets.

usage: abi_test.py COMPILER [BUILD_DIR]     Exit code 77: the headers cannot be obtained. Sizes may only have grown.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import environment

ROOT = Path(__file__).resolve().parents[2]
FIELDS = {
    "TfLiteTensor": "type data dims params allocation_type bytes allocation name delegate buffer_handle data_is_stale "
                    "is_variable quantization sparsity dims_signature",
    "TfLiteNode": "inputs outputs intermediates temporaries user_data builtin_data custom_initial_data "
                  "custom_initial_data_size delegate might_have_side_effect",
    "TfLiteDelegateParams": "delegate nodes_to_replace input_tensors output_tensors",
    "TfLiteRegistration": "init free prepare invoke profiling_string builtin_code custom_name version",
    "TfLiteContext": "tensors_size GetExecutionPlan tensors ResizeTensor ReportError AddTensors GetNodeAndRegistration "
                     "ReplaceNodeSubsetsWithDelegateKernels recommended_num_threads profiler "
                     "PreviewDelegatePartitioning GetTensor",
    "TfLiteDelegate": "Prepare CopyFromBufferHandle CopyToBufferHandle FreeBufferHandle flags",
    "TfLiteAffineQuantization": "scale zero_point quantized_dimension",
    "TfLiteQuantization": "type params",
}
MAY_GROW = {"TfLiteRegistration", "TfLiteContext", "TfLiteDelegate"}


def layout(compiler, include, header):
    places = [(s, f) for s, fields in FIELDS.items() for f in fields.split()]
    lines = [f'std::printf("{s}.{f} %zu\\n", offsetof({s}, {f}));' for s, f in places]
    lines += [f'std::printf("{s} %zu\\n", sizeof({s}));' for s in FIELDS]
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "probe.cpp", Path(folder) / "probe"
        head = ["#include <cstddef>", "#include <cstdio>", f'#include "{header}"', "int main() {"]
        source.write_text("\n".join([*head, *lines, "}"]))
        subprocess.run([compiler, "-std=c++20", "-I", str(include), str(source), "-o", str(program)], check=True)
        printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    return {key: int(value) for key, value in (line.split() for line in printed.splitlines())}


def main():
    build = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "build"
    library = environment.tflite_2_9(build / "npm")
    if library is None:
        return 77
    ours = layout(sys.argv[1], ROOT / "src", "frontend/tflite_delegate/tflite_abi.h")
    theirs = layout(sys.argv[1], library.parents[1] / "include", "tensorflow/lite/c/common.h")
    wrong = [f"{key}: {ours[key]}, in TFLite 2.9 {theirs[key]}" for key in ours
             if ours[key] != theirs[key] and not (key in MAY_GROW and ours[key] > theirs[key])]
    print("\n".join(wrong) or f"abi: {len(ours)} places and sizes agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
