/** Where an object store is asked. Its keys are settings of their own: an endpoint has none. Throws for anything else. */
export function parseEndpoint(text: string): string {
  if (URL.canParse(text) && /^https?:\/\/[^/?#@]+\/?$/.test(text)) return text;
  throw new Error('expected http(s)://host[:port], without a path, user name or password');
}
