package testjobs;

import java.util.Optional;

/** A group of scenarios, with the same names as in {@code tests/golden/scenarios.py}. */
interface Scenarios {
    Optional<Scenario> named(String name, Place place);
}
