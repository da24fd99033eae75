"""What statements claim about somebody, and how two of them relate: rules, English and Chinese.

Careful on purpose. Taking two statements for unrelated costs a memory too many; taking them for
more costs one that was right.
"""
