import assert from 'node:assert/strict';
import { test } from 'node:test';
import xterm from '@xterm/headless';
import { renderScreen } from './render-screen.ts';

async function draw(text: string): Promise<string> {
  const screen = new xterm.Terminal({ cols: 80, rows: 24, allowProposedApi: true });
  await new Promise<void>((resolve) => screen.write(text, resolve));
  return renderScreen(screen);
}

test('a screen becomes texts in their colours and columns, and bars become boxes', async () => {
  const svg = await draw('\x1b[32m✔\x1b[39m a<b\r\n  \x1b[36m██\x1b[39m░ 66 %');
  assert.deepEqual(svg.match(/<text .*/g), [
    '<text x="16" y="54" fill="#7fd88f" xml:space="preserve">✔</text>',
    '<text x="24.4" y="54" fill="#d6deeb" textLength="33.6" lengthAdjust="spacingAndGlyphs" xml:space="preserve"> a&lt;b</text>',
    '<text x="58" y="73" fill="#d6deeb" textLength="42" lengthAdjust="spacingAndGlyphs" xml:space="preserve"> 66 %</text>',
  ]);
  assert.deepEqual(svg.match(/<rect x="\d\d.*/g), [
    '<rect x="32.8" y="63" width="16.8" height="11" fill="#5fd7e7"/>',
    '<rect x="49.6" y="63" width="8.4" height="11" fill="#d6deeb" fill-opacity="0.22"/>',
  ]);
});

test('a picture is as wide as eighty columns, as high as what was written, and loads nothing', async () => {
  const svg = await draw('one\r\ntwo\x1b[2K');
  assert.match(svg, /width="704" height="75"/);
  assert.doesNotMatch(svg, /<script|href|url\(|<style/);
});
