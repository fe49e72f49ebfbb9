/** A path is longer or deeper than anybody would ask for: it is left out of the shape, and not found by it. */
export const SHAPE_PATHS_MAX = 64;
export const SHAPE_DEPTH_MAX = 8;
export const SHAPE_PATH_CHARS_MAX = 256;
/** Objects and arrays of one content that are looked into; what only others have is left out. */
const SHAPE_VALUES_MAX = 20_000;

const PLAIN = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** One step of a path in its one spelling: `.name`, `["other name"]`, or `[*]` for the members of an array. */
export const stepOf = (name: string) => (PLAIN.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`);
export const ARRAY_STEP = '[*]';

/** Paths that were met lately, by what they begin with and by name: applications have few, and making one takes longer than looking. */
const REMEMBERED_MAX = 10_000;
let remembered = new Map<string, Map<string, string>>();
let rememberedCount = 0;

function pathOf(prefix: string, name: string): string {
  const known = remembered.get(prefix)?.get(name);
  if (known !== undefined) return known;
  const path = prefix + stepOf(name);
  if (path.length > SHAPE_PATH_CHARS_MAX) return path;
  if (rememberedCount++ === REMEMBERED_MAX) [remembered, rememberedCount] = [new Map(), 1];
  const paths = remembered.get(prefix) ?? new Map<string, string>();
  remembered.set(prefix, paths.set(name, path));
  return path;
}

/** Contents that have had the same paths in the same order so far. */
class Way {
  /** Whether it is there for contents to come. */
  readonly #isKept: boolean;
  readonly #before: Way | undefined;
  readonly #path: string;
  /** How many paths it has. */
  readonly #length: number;
  /** The first way on; most have no other. */
  #first: Way | undefined;
  #others: Map<string, Way> | undefined;
  /** The text of the shape (`shapeKeyOf`), where it is known and not too long. */
  key: string | undefined;

  constructor(isKept: boolean, before?: Way, path = '') {
    this.#isKept = isKept;
    this.#before = before;
    this.#path = path;
    this.#length = before ? before.#length + 1 : 0;
    if (isKept) waysCount++;
  }

  /** The way with one path more, which it has not yet; undefined where there would be too many. */
  over(path: string): Way | undefined {
    const first = this.#first;
    if (first !== undefined && first.#path === path) return first;
    const known = this.#others?.get(path);
    if (known) return known;
    if (this.#length === SHAPE_PATHS_MAX) return undefined;
    const way = new Way(this.#isKept, this, path);
    if (first === undefined) this.#first = way;
    else this.#others = (this.#others ?? new Map<string, Way>()).set(path, way);
    return way;
  }

  /** In a fixed order. */
  paths(): string[] {
    const paths: string[] = [];
    for (let way: Way = this; way.#before; way = way.#before) paths.push(way.#path);
    return paths.sort();
  }
}

interface Start {
  readonly type: string;
  readonly contentType: string | null;
}

/** Ways of contents that were met lately, and the longest key that is kept with one: strangers' contents may all differ. */
const WAYS_MAX = 10_000;
const KEY_CHARS_MAX = 1_024;
let starts = new Map<string, Map<string | null, Way>>();
let waysCount = 0;

function startOf(start: Start): Way {
  if (waysCount > WAYS_MAX) [starts, waysCount] = [new Map(), 0];
  const { type, contentType } = start;
  const known = starts.get(type)?.get(contentType);
  if (known) return known;
  const way = new Way(true);
  const ofType = starts.get(type) ?? new Map<string | null, Way>();
  starts.set(type, ofType.set(contentType, way));
  return way;
}

/** Looks through a content, level by level: where it has too many paths, the outer ones stay. */
class Walk {
  #way: Way;
  /** Of the next level: objects and arrays, and the path of each. */
  #values: object[] = [];
  #paths: string[] = [];
  #left = SHAPE_VALUES_MAX;
  /** Paths that members of arrays have, which alone may have one path twice: a way is asked for none that it has. */
  #repeatable: Set<string> | undefined;

  constructor(start: Way) {
    this.#way = start;
  }

  through(content: object): Way {
    let [values, paths] = [[content], ['']];
    for (let depth = 0; depth < SHAPE_DEPTH_MAX && values.length > 0; depth++) {
      for (const [at, value] of values.entries()) if (!this.#look(value, paths[at]!)) return this.#way;
      [values, paths] = [this.#values, this.#paths];
      [this.#values, this.#paths] = [[], []];
    }
    return this.#way;
  }

  /**
   * What an object or array has below its own path; the members of an array, which may be millions, have one path. Each path is made when
   * it is asked for: a stranger's object may have hundreds of thousands, of which few are looked at, and the others would drive out what
   * is remembered.
   * @returns false: there are too many paths
   */
  #look(value: object, path: string): boolean {
    const isMember = path.includes(ARRAY_STEP);
    if (!Array.isArray(value)) {
      for (const name of Object.keys(value)) {
        const own = pathOf(path, name);
        if (own.length > SHAPE_PATH_CHARS_MAX) continue;
        if (!this.#step(own, isMember)) return false;
        this.#lookLater((value as Readonly<Record<string, unknown>>)[name], own);
      }
      return true;
    }
    const own = path + ARRAY_STEP;
    if (value.length === 0 || own.length > SHAPE_PATH_CHARS_MAX) return true;
    if (!this.#step(own, isMember)) return false;
    for (let at = 0; at < value.length && this.#left > 0; at++) this.#lookLater(value[at], own);
    return true;
  }

  #step(path: string, isMember: boolean): boolean {
    if (isMember && this.#repeatable?.has(path)) return true;
    const way = this.#way.over(path);
    if (!way) return false;
    this.#way = way;
    if (isMember) {
      this.#repeatable ??= new Set();
      this.#repeatable.add(path);
    }
    return true;
  }

  #lookLater(value: unknown, path: string): void {
    if (typeof value !== 'object' || value === null || this.#left === 0) return;
    this.#values.push(value);
    this.#paths.push(path);
    this.#left--;
  }
}

/**
 * The paths that a content has: every member at every level, those of array members once. They are in a fixed order, so
 * that equal shapes are equal texts. Breadth first: where there are too many, the outer ones stay.
 */
export const shapeOf = (content: Readonly<Record<string, unknown>>): string[] =>
  new Walk(new Way(false)).through(content).paths();

/** What a shape is made of. */
export interface Shaped extends Start {
  readonly content: Readonly<Record<string, unknown>>;
}

/** One text per shape: [type, content type, paths]. Contents of one application are alike: theirs is made once. */
export function shapeKeyOf({ type, contentType, content }: Shaped): string {
  const way = new Walk(startOf({ type, contentType })).through(content);
  if (way.key !== undefined) return way.key;
  const key = JSON.stringify([type, contentType, shapeOf(content)]);
  if (key.length <= KEY_CHARS_MAX) way.key = key;
  return key;
}
