"""Tools for people who find out how an NPU works, over what `skillet decode`, `edit` and `replay` say: of no family in particular."""
