"""Milvus as the vector index: an embedded milvus-lite folder or a server, 2.3 and newer.

Importing `index` takes half a second: it brings pymilvus, and pymilvus pandas. So only who opens an
index imports it; `address` and `refusals` are light.
"""
