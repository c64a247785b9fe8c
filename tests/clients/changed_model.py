"""Copies a GGUF file with other metadata: for a model of any weights that has a template for tools, and room for an
agent's prompt."""
import struct

FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a value, by its type
UINT32, STRING, ARRAY = 4, 8, 9
ALIGNMENT = 32


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def number(self, form):
        value, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        n_bytes = self.number("Q")
        self.at += n_bytes
        return self.data[self.at - n_bytes:self.at].decode()

    def skip_value(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            element, n_values = self.number("I"), self.number("Q")
            for _ in range(n_values if element in (STRING, ARRAY) else 0):
                self.skip_value(element)
            self.at += FIXED.get(element, 0) * n_values
        else:
            self.at += FIXED[kind]


def text_bytes(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def entry(key, value):
    if isinstance(value, str):
        return text_bytes(key) + struct.pack("<I", STRING) + text_bytes(value)
    return text_bytes(key) + struct.pack("<II", UINT32, value)


def write_changed(source, changes, path):
    """changes: by key, a text or a whole number."""
    reader = Reader(source.read_bytes())
    assert reader.number("I") == 0x46554747, f"{source} is no GGUF file"
    version, n_tensors, n_entries = reader.number("I"), reader.number("Q"), reader.number("Q")
    entries = []
    for _ in range(n_entries):
        start = reader.at
        key = reader.text()
        reader.skip_value(reader.number("I"))
        if key not in changes:
            entries.append(reader.data[start:reader.at])
    entries += [entry(key, value) for key, value in changes.items()]
    infos = reader.at
    for _ in range(n_tensors):
        reader.text()
        n_dims = reader.number("I")
        reader.at += 8 * n_dims + 4 + 8  # their lengths, the type, the place
    header = b"GGUF" + struct.pack("<IQQ", version, n_tensors, len(entries)) + b"".join(entries)
    header += reader.data[infos:reader.at]
    weights = reader.at + -reader.at % ALIGNMENT
    with open(path, "wb") as file:
        file.write(header + b"\0" * (-len(header) % ALIGNMENT))
        file.write(memoryview(reader.data)[weights:])
