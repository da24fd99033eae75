"""How our processes speak gRPC; knows no business word."""
