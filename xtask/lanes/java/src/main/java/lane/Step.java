package lane;

import java.util.Objects;
import java.util.concurrent.Callable;

/** Prints a line for each step of a lane, as xtask reads it. */
final class Step {
  private static boolean failed;

  private Step() {}

  /** One step; whatever is thrown inside is its failure, and the next one goes on. */
  static void step(String name, Callable<?> body) {
    try {
      body.call();
      System.out.println("ok " + name);
    } catch (Throwable error) {
      failed = true;
      String text = String.valueOf(error).replaceAll("\\s+", " ");
      System.out.println("not ok " + name + ": " + text.substring(0, Math.min(300, text.length())));
    }
  }

  /** Equal, or a failure. */
  static void expect(String what, Object found, Object expected) {
    if (!Objects.equals(found, expected)) {
      throw new AssertionError(what + " is " + found + ", not " + expected);
    }
  }

  /** Waits until a value is there; what was seen last is told otherwise. */
  static <T> T eventually(String what, Callable<T> look) throws Exception {
    long end = System.nanoTime() + 30_000_000_000L;
    while (true) {
      T found = look.call();
      if (found != null) {
        return found;
      }
      if (System.nanoTime() > end) {
        throw new AssertionError("timed out after 30 s waiting for " + what);
      }
      Thread.sleep(20);
    }
  }

  /** Ends the program, with whatever threads a client has left. */
  static void finish() {
    System.out.flush();
    Runtime.getRuntime().halt(failed ? 1 : 0);
  }
}
