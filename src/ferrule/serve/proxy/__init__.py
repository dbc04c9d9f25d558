"""The proxy: programs that speak one model API, on models of any host."""
