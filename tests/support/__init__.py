"""What tests share: real servers, a raw client, values."""
