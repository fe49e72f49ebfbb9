import { AppError } from '@skerry/protocol/forms';

/**
 * What a node tells of a thing that was asked for by its hash. Throws UNEXPECTED_ANSWER where it tells of another: whoever asked would
 * sign for that one what was meant for theirs.
 * @param name of the field that says which thing it is
 */
export function checkAsked<Name extends string, View extends Readonly<Record<Name, string>>>(
  asked: string,
  name: Name,
  view: View,
): View {
  const told = view[name];
  // Nodes spell hexadecimal digits in lower case, however they were asked.
  if (told === asked || told === asked.toLowerCase()) return view;
  throw new AppError('UNEXPECTED_ANSWER', `the node tells of ${told} where ${asked} was asked for`);
}
