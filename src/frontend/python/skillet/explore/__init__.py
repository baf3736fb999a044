"""Tools to find out how an NPU works, based on the output of `skillet decode`, `edit` and `replay`. They work for all families."""
