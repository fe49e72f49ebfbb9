/**
 * Whether a service can be asked at an address. A user name and a password in it would be shown wherever the address is, and `fetch`
 * takes none.
 */
export function isServiceUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
}
