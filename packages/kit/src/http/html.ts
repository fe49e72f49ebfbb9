/** Text as it stands between tags or in a quoted attribute of a page. */
export const escapeHtml = (text: unknown) =>
  String(text).replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
