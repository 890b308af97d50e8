import type { Context, Middleware, Next } from 'koa';

/** The page loads its own files only, and no other page may frame it. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');
/**
 * For answers of the API: logs and metadata are content of guests. Opened as a document, they run
 * no script and have an origin of their own.
 */
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox";

/** Sets the headers that confine the page, and every document of the same origin. */
export function setPageHeaders(context: Context): void {
  context.set('Content-Security-Policy', PAGE_POLICY);
}

/** Sets the headers of all answers. Answers are data unless they turn out to be the page. */
export function secureAnswers(isTls: boolean): Middleware {
  return async (context: Context, next: Next): Promise<void> => {
    context.set({
      'Content-Security-Policy': DATA_POLICY,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Frame-Options': 'DENY',
      'Referrer-Policy': 'no-referrer',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
      ...(isTls && { 'Strict-Transport-Security': 'max-age=31536000' }),
    });
    await next();
    // The rest of a stranger's request is not read.
    if (context.status === 401) context.set('Connection', 'close');
  };
}
