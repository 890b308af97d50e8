import type { Page } from 'playwright-core';

/** Markup that runs a script, and loads a picture, where a page takes text for markup. */
export const MARKUP = '<img src=x onerror="window.canary=1"><script>window.canary=1</script>';

/** Members whose values decide what a page shows. */
const KEPT = [
  ...['type', 'event', 'opcode', 'status', 'state', 'csrf', 'role', 'user', 'visibility', 'level'],
  ...['mode', 'uuid', 'verified', 'catalogue', 'stage'],
];
/** Objects whose keys are names that users choose. */
const NAMED = [
  ...['osParameters', 'osParametersPrivate', 'osParametersEffective', 'defaults', 'connections'],
];

/**
 * Puts markup into every text of every JSON answer before the page reads it, so that no field needs
 * a test of its own. Logs and metadata become markup.
 */
export async function spoilAnswers(page: Page): Promise<void> {
  await page.route(/\/v1\/.*\/(audit|log|metadata)(\/|\?|$)/, (route) =>
    route.fulfill({ contentType: 'text/plain', body: MARKUP }),
  );
  await page.addInitScript(`{
    const kept = new Set(${JSON.stringify(KEPT)});
    const named = new Set(${JSON.stringify(NAMED)});
    const markup = ${JSON.stringify(MARKUP)};
    // The page of one instance compares the name with the address.
    const isKept = (key) =>
      kept.has(key) || (key === 'name' && location.pathname.startsWith('/instances/'));
    const spoil = (value, key) => {
      if (typeof value === 'string') return isKept(key) ? value : value + markup;
      if (Array.isArray(value)) return value.map((each) => spoil(each, key));
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(
        Object.entries(value).map(([name, each]) => [
          named.has(key) ? name + markup : name,
          spoil(each, name),
        ]),
      );
    };
    const parse = JSON.parse;
    JSON.parse = (text, ...more) => spoil(parse(text, ...more), '');
    const readJson = Response.prototype.json;
    Response.prototype.json = async function () {
      return spoil(await readJson.call(this), '');
    };
  }`);
}

/** Returns the reasons why markup of a text has become part of the page. */
export async function findMarkup(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[
    ...(window.canary === undefined ? [] : ['a script of a text ran']),
    ...[...document.querySelectorAll('#app img, #app script')].map((each) => each.outerHTML),
  ]`);
}
