import { Terminal } from '@xterm/xterm';

/** As wide as a serial console, whose guest does not learn of another size. */
const COLUMNS = 80;
const ROWS = 25;
/** Terminals draw each character into a cell of equal width. */
const FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const FONT_SIZE_PX = 13;
const SCROLLBACK_LINES = 5000;
/** A browser cannot pause a WebSocket, so a guest that prints faster than this is disconnected. */
const HIGH_WATER_CHARACTERS = 500_000;

/**
 * Connects a terminal in an element to the console of an instance until the signal aborts. Output
 * of the guest changes nothing outside the element: titles, clipboard and links are ignored.
 */
export function openTerminal(
  element: HTMLElement,
  name: string,
  signal: AbortSignal,
  onLost: (reason: string) => void,
): void {
  const sheets = documentWithSheets(signal);
  const terminal = new Terminal({
    cols: COLUMNS,
    rows: ROWS,
    scrollback: SCROLLBACK_LINES,
    screenReaderMode: true,
    documentOverride: sheets,
    // Operating system commands set titles and colours, and name links.
    linkHandler: { activate: () => undefined },
    fontFamily: FONT,
    fontSize: FONT_SIZE_PX,
  });
  for (const command of [0, 1, 2, 8, 52]) terminal.parser.registerOscHandler(command, () => true);
  // The scroll bar of xterm.js 6.0 ignores documentOverride.
  document.createElement = (name: string) => sheets.createElement(name);
  try {
    terminal.open(element);
  } finally {
    Reflect.deleteProperty(document, 'createElement');
  }
  terminal.focus();
  terminal.attachCustomKeyEventHandler((event) => {
    if (!isLeaveKey(event)) return true;
    terminal.blur();
    document.querySelector<HTMLElement>('.tabs a[aria-current]')?.focus();
    return false;
  });
  const socket = new WebSocket(
    `${location.origin.replace(/^http/, 'ws')}/v1/instances/${encodeURIComponent(name)}/console`,
  );
  socket.binaryType = 'arraybuffer';
  let waiting = 0;
  socket.addEventListener('message', ({ data }) => {
    const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : String(data);
    waiting += bytes.length;
    if (waiting > HIGH_WATER_CHARACTERS)
      socket.close(1000, 'the guest prints faster than the page shows');
    terminal.write(bytes, () => {
      waiting -= bytes.length;
    });
  });
  socket.addEventListener('close', ({ reason }) => {
    if (!signal.aborted) onLost(`The connection to the console ended${reason && `: ${reason}`}.`);
  });
  const encoder = new TextEncoder();
  terminal.onData((text) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(encoder.encode(text));
  });
  terminal.onBinary((text) => {
    if (socket.readyState === WebSocket.OPEN)
      socket.send(Uint8Array.from(text, (each) => each.charCodeAt(0)));
  });
  signal.addEventListener('abort', () => {
    socket.close();
    terminal.dispose();
  });
}

/**
 * Recognizes Ctrl+Alt+Q. On some keyboards this types another character, which AltGr+Q types too:
 * that one belongs to the guest.
 */
function isLeaveKey(event: KeyboardEvent): boolean {
  const isQ = event.key.toLowerCase() === 'q' || event.code === 'KeyQ';
  return event.ctrlKey && event.altKey && isQ && !event.getModifierState('AltGraph');
}

/**
 * Returns the document for the terminal, which makes `style` elements and attributes. The page's
 * policy refuses these, so they become constructed style sheets and properties.
 */
function documentWithSheets(signal: AbortSignal): Document {
  const createElement = (name: string): HTMLElement =>
    name === 'style' ? createSheet(signal) : createStyled(name);
  return new Proxy(document, {
    get: (target, key) => {
      if (key === 'createElement') return createElement;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function createStyled(name: string): HTMLElement {
  const element = Document.prototype.createElement.call(document, name);
  element.setAttribute = (key, value) => {
    if (key === 'style') element.style.cssText = value;
    else Element.prototype.setAttribute.call(element, key, value);
  };
  return element;
}

/** Returns an element whose text is a style sheet of the page until the signal aborts. */
function createSheet(signal: AbortSignal): HTMLElement {
  const element = Document.prototype.createElement.call(document, 'template');
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  const observer = new MutationObserver(() => sheet.replaceSync(element.textContent));
  observer.observe(element, { childList: true, characterData: true, subtree: true });
  signal.addEventListener('abort', () => {
    observer.disconnect();
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
  });
  return element;
}
