import { join } from 'node:path';
import { AppError } from '@skerry/protocol/forms';
import { findClosest } from '../closest.ts';
import { createAddressSet } from '../net/client-address.ts';
import { type SkerryPaths, skerryPaths } from './paths.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Takes variables that are meant for this process alone from what it passes on to the programs that it runs. */
export function dropVariables(names: readonly string[]): void {
  for (const name of names) delete process.env[name];
}

/** Administration programs live where an ordinary user's PATH does not look. */
const ADMIN_DIRECTORIES = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin'];

/** Where programs are looked for, in order. */
export function programDirectories(): string[] {
  const given = (process.env.PATH ?? '').split(':').filter((part) => part !== '');
  return [...new Set([...given, ...ADMIN_DIRECTORIES])];
}

/** What programs are told of where their own files and the time are. */
const INHERITED = ['HOME', 'TMPDIR', 'TZ'];
/** Of those that fetch: how they get out of this network. With a password, where the proxy has one. */
const PROXIES = ['http_proxy', 'https_proxy', 'ftp_proxy', 'all_proxy', 'no_proxy'];

const inherited = (names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));

/**
 * What programs that a service runs inherit. No setting: it may hold a secret, and whoever breaks into a program, as a guest into its
 * QEMU, reads what that was started with. They speak plain English, because some of their words are read.
 */
export const programEnvironment = (): Record<string, string> => ({
  ...inherited(INHERITED),
  PATH: programDirectories().join(':'),
  LC_ALL: 'C.UTF-8',
});

/** Goes to programs that fetch packages, besides. */
export const proxyVariables = (): Record<string, string> =>
  inherited(PROXIES.flatMap((name) => [name, name.toUpperCase()]));

/** One setting: how its text is read, what it is when absent, what it is for. */
export interface Setting<T> {
  readonly parse: (text: string) => T;
  /** What it is when absent; may depend on where things live on this machine. */
  readonly fallback: T | undefined | ((environment: Environment) => T);
  readonly required: boolean;
  readonly describe: string;
  readonly secret: boolean;
  /** What it may be, where that is a range or a few words. */
  readonly allowed?: string;
  /** A second name, without the service's prefix, that people know it by (`DATABASE_URL`). */
  readonly alias?: string;
  /** It is a port to listen on. */
  readonly isPort?: true;
  /** It is an address to listen on. */
  readonly isHost?: true;
}

export interface ConfigSpec<C> {
  readonly prefix: string;
  readonly settings: { readonly [K in keyof C]: Setting<C[K]> };
  /** What settings were called before, with their names of today. */
  readonly renamed?: Readonly<Record<string, keyof C & string>>;
}

export type ConfigOf<S> = S extends ConfigSpec<infer C> ? C : never;

function setting<T>(
  parse: (text: string) => T,
  fallback: T | undefined,
  describe: string,
  secret = false,
): Setting<T> {
  return { parse, fallback, required: fallback === undefined, describe, secret };
}

/** What a setting is for, and what it may be. */
export const meaningOf = ({ describe, allowed }: Pick<Setting<unknown>, 'describe' | 'allowed'>): string =>
  allowed === undefined ? describe : `${describe} (${allowed})`;

const bad = (expected: string): never => {
  throw new Error(`expected ${expected}`);
};

/** Whole numbers; the largest that there is bounds nothing. */
const describeRange = (minimum: number, maximum: number) =>
  maximum === Number.MAX_SAFE_INTEGER ? `from ${minimum}` : `${minimum} to ${maximum}`;

function parseInteger(text: string, minimum: number, maximum: number): number {
  const value = Number(text);
  if (!/^-?[0-9]+$/.test(text) || value < minimum || value > maximum)
    bad(`a whole number from ${minimum} to ${maximum}`);
  return value;
}

/** What can be extended by a path. A user name or password would be shown wherever the address is, and `fetch` takes none. */
function parseUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    bad('an http or https address, without user name, password, query or fragment');
  return text.replace(/\/+$/, '');
}

/** As the driver reads it: a URL, perhaps of several hosts, or a Unix socket. */
function parseDatabase(text: string): string {
  if (!/^(postgres(ql)?:\/\/|socket:|\/)/.test(text)) bad('an address such as postgresql://USER@HOST/NAME');
  return text;
}

const DOMAIN = /^(?!.{240})([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** In lower case, without a dot at its end; some room is left for names below it. */
function parseDomain(text: string): string {
  const name = text.toLowerCase().replace(/\.$/, '');
  return DOMAIN.test(name) ? name : bad('a domain name, such as example.org');
}

function parseFlag(text: string): boolean {
  if (/^(true|yes|1|on)$/i.test(text)) return true;
  if (/^(false|no|0|off)$/i.test(text)) return false;
  return bad('yes or no');
}

const parseList = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

function parseRanges(text: string): string[] {
  const ranges = text === 'none' ? [] : parseList(text);
  createAddressSet(ranges);
  return ranges;
}

/** A list each of whose parts is read. */
const listOf =
  <T>(parse: (part: string) => T) =>
  (text: string): T[] =>
    parseList(text).map(parse);

/** `name=value` pairs; the value is one of those that are allowed. */
function parseTable<T extends string>(text: string, values: readonly T[]): Readonly<Record<string, T>> {
  const pairs = (text === 'none' ? [] : parseList(text)).map((part) => {
    const [name = '', value = '', ...more] = part.split('=').map((side) => side.trim());
    if (name === '' || more.length > 0 || !values.includes(value as T))
      bad(`names with one of ${values.join(', ')}, such as a=${values[0]},b=${values[0]}`);
    return [name, value as T] as const;
  });
  return Object.fromEntries(pairs);
}

const PORT_MAX = 65_535;

/** The kinds of settings. Without a fallback a setting is required. `optional*` may be absent and are then undefined. */
export const settings = {
  text: (fallback: string | undefined, describe: string) => setting((text) => text, fallback, describe),
  optionalText: (describe: string): Setting<string | undefined> => ({
    parse: (text) => text,
    fallback: undefined,
    required: false,
    describe,
    secret: false,
  }),
  optionalInteger: (minimum: number, maximum: number, describe: string): Setting<number | undefined> => ({
    ...settings.optionalText(describe),
    parse: (text) => parseInteger(text, minimum, maximum),
    fallback: undefined,
    allowed: describeRange(minimum, maximum),
  }),
  optionalUrl: (describe: string): Setting<string | undefined> => ({
    ...settings.optionalText(describe),
    parse: parseUrl,
  }),
  /** A value that is never printed. */
  optionalSecret: (
    describe: string,
    alias?: string,
    parse: (text: string) => string = (text) => text,
  ): Setting<string | undefined> => ({
    parse,
    fallback: undefined,
    required: false,
    describe,
    secret: true,
    ...(alias === undefined ? {} : { alias }),
  }),
  /** Where a PostgreSQL server is, with its password. */
  optionalDatabase: (describe: string, alias: string): Setting<string | undefined> =>
    settings.optionalSecret(describe, alias, parseDatabase),
  /** A directory below this person's data, cache or config (docs/operating.md). */
  directory: (kind: keyof SkerryPaths, name: string, describe: string): Setting<string> => ({
    parse: (text) => text,
    fallback: (environment) => join(skerryPaths(environment)[kind], name),
    required: false,
    describe,
    secret: false,
  }),
  secretList: (describe: string): Setting<string[]> => setting(parseList, [], describe, true),
  integer: (
    minimum: number,
    maximum: number,
    fallback: number | undefined,
    describe: string,
  ): Setting<number> => ({
    ...setting((text) => parseInteger(text, minimum, maximum), fallback, describe),
    allowed: describeRange(minimum, maximum),
  }),
  host: (): Setting<string> => ({
    ...setting((text) => text, 'localhost', 'address to listen on; "::" for every address'),
    isHost: true,
  }),
  /** 0 lets the system choose. */
  port: (fallback: number | undefined, describe: string): Setting<number> => ({
    ...setting((text) => parseInteger(text, 0, PORT_MAX), fallback, describe),
    allowed: describeRange(0, PORT_MAX),
    isPort: true,
  }),
  url: (fallback: string | undefined, describe: string) => setting(parseUrl, fallback, describe),
  /** A domain below which names are. */
  domain: (fallback: string | undefined, describe: string) => setting(parseDomain, fallback, describe),
  optionalDomain: (describe: string): Setting<string | undefined> => ({
    ...settings.optionalText(describe),
    parse: parseDomain,
  }),
  coreUrl: (describe: string) => setting(parseUrl, 'http://localhost:4024', describe),
  flag: (fallback: boolean | undefined, describe: string): Setting<boolean> => ({
    ...setting(parseFlag, fallback, describe),
    allowed: 'yes, no',
  }),
  list: (fallback: string[] | undefined, describe: string) => setting(parseList, fallback, describe),
  listOf: <T>(parse: (part: string) => T, fallback: T[] | undefined, describe: string) =>
    setting(listOf(parse), fallback, describe),
  urls: (fallback: string[] | undefined, describe: string) => setting(listOf(parseUrl), fallback, describe),
  /** IP addresses and CIDR ranges, comma-separated; `none` is none where there is a fallback. */
  addressRanges: (fallback: string[] | undefined, describe: string) =>
    setting(parseRanges, fallback, describe),
  /** `name=value`, comma-separated, in place of all of the fallback; `none` is an empty table. */
  table: <const T extends string>(
    values: readonly T[],
    fallback: Readonly<Record<string, T>>,
    describe: string,
  ) => setting((text) => parseTable(text, values), fallback, describe),
  choice: <const T extends string>(
    choices: readonly T[],
    fallback: T | undefined,
    describe: string,
  ): Setting<T> => ({
    ...setting(
      (text) => (choices.includes(text as T) ? (text as T) : bad(`one of ${choices.join(', ')}`)),
      fallback,
      describe,
    ),
    allowed: choices.join(', '),
  }),
};

/** `SKERRY_CORE` and `dataDir` -> `SKERRY_CORE_DATA_DIR` */
export function variableName(prefix: string, key: string): string {
  return `${prefix}_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

export function defineConfig<C>(
  prefix: string,
  specs: ConfigSpec<C>['settings'],
  renamed: Readonly<Record<string, keyof C & string>> = {},
): ConfigSpec<C> {
  return { prefix, settings: specs, renamed };
}

/** Every variable that a service reads, its second names included. */
export const variablesOf = <C>({ prefix, settings: specs }: ConfigSpec<C>): string[] =>
  Object.entries<Setting<unknown>>(specs).flatMap(([key, { alias }]) => [
    variableName(prefix, key),
    ...(alias === undefined ? [] : [alias]),
  ]);

/** The one name that a variable has the beginning of: a unit such as `_MIB` is soon forgotten. */
function findLonger(variable: string, known: readonly string[]): string | undefined {
  const longer = known.filter((name) => name.startsWith(`${variable}_`));
  return longer.length === 1 ? longer[0] : undefined;
}

export function describeUnknown(variable: string, known: readonly string[]): string {
  const written = variable.toUpperCase();
  const meant = findClosest(written, known) ?? findLonger(written, known);
  return `${variable} is not a known setting${meant === undefined ? '' : `; did you mean ${meant}?`}`;
}

/**
 * A value that is wrong, told back, unless the error has done so or it may have a secret in it: addresses have theirs before an @ or in
 * a query.
 */
const repeated = ({ secret }: Setting<unknown>, text: string, { message }: Error) =>
  secret || /[@?]/.test(text) || message.includes(', not "') ? '' : `, not ${JSON.stringify(text)}`;

/**
 * Reads a service's settings from environment variables. Strict: every problem is reported at once, and a variable
 * with the service's prefix that no setting has is a problem too (a typing error would otherwise be silence).
 */
export function readConfig<C>(spec: ConfigSpec<C>, environment: Environment): C {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  const known = new Set<string>();
  for (const [key, one] of Object.entries<Setting<unknown>>(spec.settings)) {
    const variable = variableName(spec.prefix, key);
    known.add(variable);
    const text = environment[variable] || (one.alias && environment[one.alias]);
    if (text === undefined || text === '') {
      if (one.required) problems.push(`${variable} is required: ${meaningOf(one)}`);
      values[key] =
        typeof one.fallback === 'function'
          ? (one.fallback as (from: Environment) => unknown)(environment)
          : one.fallback;
      continue;
    }
    try {
      values[key] = one.parse(text);
    } catch (error) {
      problems.push(`${variable}: ${(error as Error).message}${repeated(one, text, error as Error)}`);
    }
  }
  const renamed = new Map(
    Object.entries<string>(spec.renamed ?? {}).map(([before, today]) => [
      variableName(spec.prefix, before),
      variableName(spec.prefix, today),
    ]),
  );
  for (const variable of Object.keys(environment)) {
    if (!variable.startsWith(`${spec.prefix}_`) || known.has(variable)) continue;
    const today = renamed.get(variable);
    problems.push(today ? `${variable} is called ${today} now` : describeUnknown(variable, [...known]));
  }
  if (problems.length > 0)
    throw new AppError('INVALID_CONFIG', problems.join('\n'), { details: { problems } });
  return values as C;
}

export interface EffectiveSetting {
  readonly variable: string;
  readonly value: unknown;
  readonly describe: string;
}

/** A value as a variable has it: lists and tables comma-separated. */
export function settingText(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map(settingText).join(',');
  if (typeof value === 'object')
    return Object.entries(value)
      .map(([name, one]) => `${name}=${settingText(one)}`)
      .join(',');
  return String(value);
}

/** The values in force, for people; secrets are shown only as present or absent. */
export function listEffective<C>(spec: ConfigSpec<C>, config: C): EffectiveSetting[] {
  return Object.entries<Setting<unknown>>(spec.settings).map(([key, one]) => {
    const value = config[key as keyof C] as unknown;
    const isSet = Array.isArray(value) ? value.length > 0 : value !== undefined;
    return {
      variable: variableName(spec.prefix, key),
      value: one.secret ? (isSet ? '(set, hidden)' : '(not set)') : (value ?? null),
      describe: meaningOf(one),
    };
  });
}
