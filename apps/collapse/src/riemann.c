#include "riemann.h"

#include <math.h>

void riemann_flux(size_t count, double gamma, double *const left[PRIMITIVE], double *const right[PRIMITIVE],
                  double *const flux[PRIMITIVE])
{
    const double *restrict rho_l = left[RHO], *restrict rho_r = right[RHO];
    const double *restrict u_l = left[NORMAL], *restrict u_r = right[NORMAL];
    const double *restrict v_l = left[TANGENT_1], *restrict v_r = right[TANGENT_1];
    const double *restrict w_l = left[TANGENT_2], *restrict w_r = right[TANGENT_2];
    const double *restrict p_l = left[PRESSURE], *restrict p_r = right[PRESSURE];
    double *restrict f_rho = flux[RHO];
    double *restrict f_u = flux[NORMAL];
    double *restrict f_v = flux[TANGENT_1];
    double *restrict f_w = flux[TANGENT_2];
    double *restrict f_e = flux[PRESSURE];
    const double inverse_gamma_1 = 1.0 / (gamma - 1.0);

#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        const double energy_l =
            p_l[i] * inverse_gamma_1 + 0.5 * rho_l[i] * (u_l[i] * u_l[i] + v_l[i] * v_l[i] + w_l[i] * w_l[i]);
        const double energy_r =
            p_r[i] * inverse_gamma_1 + 0.5 * rho_r[i] * (u_r[i] * u_r[i] + v_r[i] * v_r[i] + w_r[i] * w_r[i]);
        const double sound_l = sqrt(gamma * p_l[i] / rho_l[i]);
        const double sound_r = sqrt(gamma * p_r[i] / rho_r[i]);

        /* Einfeldt: sound speed of the Roe average, by his closed form. */
        const double root_l = sqrt(rho_l[i]), root_r = sqrt(rho_r[i]);
        const double weight = 1.0 / (root_l + root_r);
        const double jump = u_r[i] - u_l[i];
        const double eta = 0.5 * root_l * root_r * weight * weight;
        const double u_roe = (root_l * u_l[i] + root_r * u_r[i]) * weight;
        const double sound_roe = sqrt((root_l * sound_l * sound_l + root_r * sound_r * sound_r) * weight +
                                      eta * jump * jump);
        const double slowest_l = u_l[i] - sound_l, slowest_roe = u_roe - sound_roe;
        const double fastest_r = u_r[i] + sound_r, fastest_roe = u_roe + sound_roe;
        const double s_l = slowest_l < slowest_roe ? slowest_l : slowest_roe;
        const double s_r = fastest_r > fastest_roe ? fastest_r : fastest_roe;

        const double inflow_l = rho_l[i] * (s_l - u_l[i]); /* negative: mass through the left wave */
        const double inflow_r = rho_r[i] * (s_r - u_r[i]);
        const double s_contact =
            (p_r[i] - p_l[i] + u_l[i] * inflow_l - u_r[i] * inflow_r) / (inflow_l - inflow_r);

        /* The side of the contact that the interface lies in. */
        const int leftward = s_contact < 0.0;
        const double rho = leftward ? rho_r[i] : rho_l[i];
        const double u = leftward ? u_r[i] : u_l[i];
        const double v = leftward ? v_r[i] : v_l[i];
        const double w = leftward ? w_r[i] : w_l[i];
        const double p = leftward ? p_r[i] : p_l[i];
        const double energy = leftward ? energy_r : energy_l;
        const double s = leftward ? s_r : s_l;
        const double inflow = leftward ? inflow_r : inflow_l;

        /* F* = F + s (U* - U) inside the fan, F outside it, where the clipped speed is zero. */
        const double clipped = leftward ? (s_r > 0.0 ? s_r : 0.0) : (s_l < 0.0 ? s_l : 0.0);
        const double rho_star = inflow / (s - s_contact);
        const double energy_star = rho_star * (energy / rho + (s_contact - u) * (s_contact + p / inflow));
        const double mass = rho * u + clipped * (rho_star - rho);
        f_rho[i] = mass;
        f_u[i] = rho * u * u + p + clipped * (rho_star * s_contact - rho * u);
        f_v[i] = mass * v;
        f_w[i] = mass * w;
        f_e[i] = u * (energy + p) + clipped * (energy_star - energy);
    }
}
