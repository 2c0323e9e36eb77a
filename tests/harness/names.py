"""Names that would break out of a page, a script or a table."""

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title><svg onload=alert(1)>",
    "&lt;b&gt; &amp;",
    '=HYPERLINK("http://elsewhere.example")',
    "javascript:alert(1)",
    "{{7*7}}${7*7}",
    "\u202egnp.exe",
)
"""What an operator, or whoever gave it a list of categories, could choose."""
