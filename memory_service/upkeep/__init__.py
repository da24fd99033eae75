"""What has to happen without anybody asking: telling the index, filling a new one."""
