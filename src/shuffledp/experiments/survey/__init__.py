"""The survey's Tables 1 to 6, measured: the local, the shuffle and the central model side by side."""
