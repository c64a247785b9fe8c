def published_cases():
    return {}
