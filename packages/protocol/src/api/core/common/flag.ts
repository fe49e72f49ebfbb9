import { Type } from '../../../type.ts';
import { defaulted } from '../../operation.ts';

/** Yes or no, where Python programs ask, too: they write True and False. @param value where it is left out */
export const flag = (description: string, value = false) =>
  defaulted(Type.Union([Type.Boolean(), Type.Enum(['True', 'False', '1', '0'])], { description }), value);

export const isYes = (value: boolean | string): boolean =>
  value === true || value === 'True' || value === '1';
