import { fields, list, number, type Read, text } from '../pure/read.ts';

/** The forms of what the views ask that are loaded when they are looked at. */

export const readDraw = fields({
  seed: text,
  min: number,
  max: number,
  count: number,
  value: number,
  values: list(number),
  proof: text,
  public_key: text,
});
export type DrawAnswer = Read<typeof readDraw>;
