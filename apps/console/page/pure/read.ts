/** Reading what a node answered: it is a stranger's until its form was looked at. Small, since it is part of the first load. */

export class Unreadable extends Error {}

/** Gives the value in its form. Throws Unreadable. @param at where it stands, for the message */
export type Reader<T> = (value: unknown, at: string) => T;
export type Read<R> = R extends Reader<infer T> ? T : never;

const refuse = (at: string, expected: string): never => {
  throw new Unreadable(`${at} is not ${expected}`);
};

export const text: Reader<string> = (value, at) => (typeof value === 'string' ? value : refuse(at, 'a text'));
export const number: Reader<number> = (value, at) =>
  typeof value === 'number' && Number.isFinite(value) ? value : refuse(at, 'a number');
export const flag: Reader<boolean> = (value, at) =>
  typeof value === 'boolean' ? value : refuse(at, 'true or false');
export const anything: Reader<unknown> = (value) => value;

export const oneOf =
  <const T extends string>(...allowed: readonly T[]): Reader<T> =>
  (value, at) =>
    allowed.find((one) => one === value) ?? refuse(at, `one of ${allowed.join(', ')}`);

/** What may be absent, or null, is null. */
export const maybe =
  <T>(reader: Reader<T>): Reader<T | null> =>
  (value, at) =>
    value === undefined || value === null ? null : reader(value, at);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object with these fields; others are left out. */
export const fields =
  <S extends Readonly<Record<string, Reader<unknown>>>>(
    shape: S,
  ): Reader<{ readonly [K in keyof S]: Read<S[K]> }> =>
  (value, at) => {
    if (!isObject(value)) return refuse(at, 'an object');
    const read = Object.entries(shape).map(([name, reader]) => [
      name,
      reader(Object.hasOwn(value, name) ? value[name] : undefined, `${at}.${name}`),
    ]);
    return Object.fromEntries(read) as { [K in keyof S]: Read<S[K]> };
  };

export const list =
  <T>(reader: Reader<T>): Reader<readonly T[]> =>
  (value, at) =>
    Array.isArray(value) ? value.map((one, index) => reader(one, `${at}[${index}]`)) : refuse(at, 'a list');

/** A list of what many people made: a row in another form is left out, and does not hide the others. */
export const rows =
  <T>(reader: Reader<T>): Reader<readonly T[]> =>
  (value, at) => {
    if (!Array.isArray(value)) return refuse(at, 'a list');
    return value.flatMap((one, index) => {
      try {
        return [reader(one, `${at}[${index}]`)];
      } catch (error) {
        if (error instanceof Unreadable) return [];
        throw error;
      }
    });
  };

/** An object of anybody's keys. */
export const record =
  <T>(reader: Reader<T>): Reader<Readonly<Record<string, T>>> =>
  (value, at) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, reader(one, `${at}.${key}`)]))
      : refuse(at, 'an object');
