/** The same machine at another port. */
export function beside(url: string, port: number): string {
  const other = new URL(url);
  other.port = String(port);
  return other.origin;
}
