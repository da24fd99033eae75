"""RPCs: each decodes, asks a use case, encodes."""
