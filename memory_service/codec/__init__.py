"""protobuf ↔ domain, and the checks of requests: each rule of the proto's comments stands once."""
