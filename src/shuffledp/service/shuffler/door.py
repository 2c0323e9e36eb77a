"""What a shuffler says of itself to a person who opens its address."""

_WORDS = (
    "This is a ShuffleDP shuffler.",
    "It takes encrypted reports from people's devices, waits until a batch of them is full, mixes them and passes them "
    "on in random order. It cannot read them: only the analyzer can, and the analyzer is not told who sent what.",
    "It writes no addresses down, and forgets in which order reports came when their batch leaves.",
    "Programs find what it answers at /openapi.json. Estimates are at the analyzer, not here.",
)
# Nothing is loaded, run or framed.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def as_text() -> str:
    """In plain words."""
    return "\n\n".join(_WORDS) + "\n"


def as_html() -> str:
    """What a shuffler says to a browser, as a small page in the colours that the reader prefers."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><title>A ShuffleDP shuffler</title>'
    )
    first, *others = _WORDS
    body = f"<main><h1>{first}</h1>{''.join(f'<p>{words}</p>' for words in others)}</main>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>'
