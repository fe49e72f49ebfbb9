const HTTP = 80;
const HTTPS = 443;

/** Where a machine answers under its name, by its gateway's word. */
export interface MachineUrls {
  readonly https: string;
  readonly http: string;
}

const urlOf = (scheme: string, host: string, port: number, usual: number) =>
  `${scheme}://${host}${port === usual ? '' : `:${port}`}/`;

/**
 * Undefined until both are known: with the usual ports in the place of the gateway's the URLs would be others for a moment.
 * @param host the machine's name below the gateway's domain
 * @param ports those of the gateway, which leaves out or says null where it has the usual ones
 */
export function machineUrls(
  host: string | undefined,
  ports: { readonly http_port: number | null; readonly https_port: number | null } | undefined,
): MachineUrls | undefined {
  if (host === undefined || ports === undefined) return undefined;
  return {
    https: urlOf('https', host, ports.https_port ?? HTTPS, HTTPS),
    http: urlOf('http', host, ports.http_port ?? HTTP, HTTP),
  };
}
