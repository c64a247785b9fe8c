"""Ports for servers of a test."""
import random
import socket


def free_port():
    """Below the ports that outgoing connections get: nobody takes a server's while it is away."""
    while True:
        with socket.socket() as s:
            port = random.SystemRandom().randrange(20000, 30000)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
