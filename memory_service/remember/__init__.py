"""Writing memories by hand, and reading what is stored: the use cases but Retrieve.

Each mutation is one transaction per request key (MemoryWriter.once). What it answers is encoded
inside, so that the same request gets the same answer again. Embeddings are made before, so that no
lock is held meanwhile; without one a memory is stored all the same, and the relay makes it later.
"""
