const LINE_CHARS = 110;

/** JSON to be read and compared: what fits stands on one line. */
export function layOut(value: unknown, indent = ''): string {
  const text = JSON.stringify(value);
  if (typeof value !== 'object' || value === null || indent.length + text.length <= LINE_CHARS) return text;
  const deeper = `${indent}  `;
  const lines = Array.isArray(value)
    ? value.map((one) => layOut(one, deeper))
    : Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${layOut(one, deeper)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}\n${deeper}${lines.join(`,\n${deeper}`)}\n${indent}${close}`;
}
