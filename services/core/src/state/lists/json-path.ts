import { AppError } from '@skerry/protocol';
import { ARRAY_STEP, SHAPE_DEPTH_MAX, SHAPE_PATH_CHARS_MAX, stepOf } from './shape.ts';

const STEP = /(?:^|\.)([A-Za-z_][A-Za-z0-9_-]*)|\[\*\]|\['([^'\\]*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;

/**
 * Reads a path of the kind that names members: `a.b`, `$.a.b`, `a["b c"]`, `items[*].name` (RFC 9535, its name and
 * wildcard selectors). Gives its steps; throws INVALID_PARAMETERS for anything else.
 */
export function parseJsonPath(text: string, parameter: string): string[] {
  const refuse = (why: string) => {
    throw new AppError(
      'INVALID_PARAMETERS',
      `query.${parameter} is not a path such as a.b, $.a["b c"] or items[*].name: ${why}`,
    );
  };
  if (text.length > SHAPE_PATH_CHARS_MAX) refuse(`it is longer than ${SHAPE_PATH_CHARS_MAX} characters`);
  const body = text.replace(/^\$\.?(?=.)/, '');
  const steps: string[] = [];
  STEP.lastIndex = 0;
  while (STEP.lastIndex < body.length) {
    const at = STEP.lastIndex;
    const match = STEP.exec(body);
    if (!match)
      return refuse(`it stops making sense at character ${at + text.length - body.length}`) as never;
    steps.push(match[0] === ARRAY_STEP ? ARRAY_STEP : nameOf(match, refuse));
  }
  if (steps.length === 0) refuse('it names nothing');
  if (steps.length > SHAPE_DEPTH_MAX) refuse(`it has more than ${SHAPE_DEPTH_MAX} steps`);
  return steps;
}

function nameOf([, plain, single, double]: RegExpExecArray, refuse: (why: string) => void): string {
  if (double === undefined) return stepOf(plain ?? single ?? '');
  let name = '';
  try {
    name = JSON.parse(`"${double}"`) as string;
  } catch {
    refuse('a quoted name has an unknown escape');
  }
  if (name.includes('\0') || !name.isWellFormed()) refuse('a quoted name holds what no content can hold');
  return stepOf(name);
}
