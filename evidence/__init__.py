"""Every number that is printed about this package, measured again on this machine: `make evidence`."""
