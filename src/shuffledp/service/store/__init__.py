"""Where servers keep what must survive them."""
