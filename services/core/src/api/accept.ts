/** One type that a caller takes (RFC 9110, section 12.5.1), all in lower case. */
export interface AcceptedType {
  readonly type: string;
  /** Without `q`. */
  readonly parameters: ReadonlyMap<string, string>;
  /** 0: not taken. */
  readonly quality: number;
}

const QUALITY = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** What `Accept` names, by quality, then in its order. What is malformed is not taken. */
export function parseAccept(accept: string): AcceptedType[] {
  const types = accept.split(',').map((part) => {
    const [type = '', ...rest] = part.split(';').map((text) => text.trim().toLowerCase());
    const parameters = new Map(
      rest.map((text) => {
        const [name = '', value = ''] = text.split('=', 2);
        return [name.trim(), value.trim().replace(/^"(.*)"$/, '$1')] as const;
      }),
    );
    const given = parameters.get('q') ?? '1';
    parameters.delete('q');
    return { type, parameters, quality: QUALITY.test(given) ? Number(given) : 0 };
  });
  return types
    .filter(({ type, quality }) => type !== '' && quality > 0)
    .sort((a, b) => b.quality - a.quality);
}

/** Whether `Accept` asks for JSON before anything else. `*` and `application/*` are not JSON. */
export const prefersJson = (accept: string | undefined): boolean =>
  accept !== undefined && parseAccept(accept)[0]?.type === 'application/json';
