"""Fetch files over HTTP(S), through apt or through pip; every file is checked and none is trusted."""
